"""Texts on screens: names, sentences, headlines, labels."""

from __future__ import annotations

NAMES = (
    "Maya Lindqvist", "Tom Okafor", "Ana Souza", "Jonas Weber", "Priya Nair", "Lea Fontaine", "Marco Bianchi",
    "Yuki Tanaka", "Sam Carter", "Ines Duarte", "Oskar Nowak", "Chloé Martin", "Diego Ramos", "Hana Kim", "Ben Adler",
    "Zoe Walsh", "Elif Kaya", "Noah Berg", "Rosa Vidal", "Kofi Mensah", "Nora Haugen", "Luca Moretti",
)  # fmt: skip

HANDLES = (
    "sunny.side", "trailmix_", "thebluehour", "coffeeandmaps", "oldtownphotos", "wildgarden", "mondaycats",
    "north.of.here", "pixelbaker", "city_lens", "slowtravel", "daily.dog", "weekendfarmer", "paperplanes",
)  # fmt: skip

SENTENCES = (
    "Took this on the way home, could not believe my eyes.",
    "Nobody told me it would look like this in real life.",
    "We waited two hours for the light and it was worth it.",
    "First weekend off in months.",
    "Does anyone know where this is?",
    "Found this while cleaning up my phone.",
    "The kids loved it, and so did the dog.",
    "Three years ago today. Time flies.",
    "Still my favorite spot in town.",
    "No filter needed, this is what it looked like.",
    "Thank you all for the kind messages this week.",
    "Swipe for the before picture.",
    "The neighbors must think we are mad.",
    "I have so many questions about this picture.",
    "Can we talk about the colors for a second?",
    "Rain in the morning, sun in the afternoon.",
    "My grandmother used to tell us stories about this place.",
    "It is much bigger than it looks from the street.",
    "They are going to tear it down next spring.",
    "Visitors are welcome every day except on Mondays.",
    "The council voted on the plan late on Tuesday evening.",
    "Experts had warned about it for more than a decade.",
    "Tickets are sold at the entrance and online.",
    "More than four thousand people came on the first day.",
    "A spokesperson did not want to comment on the matter.",
    "Prices have gone up by a third since last year.",
    "It began as a hobby and became a second job.",
    "The recipe takes forty minutes and one pan.",
)
"""Sentences of posts, comments and articles."""

REPLIES = (
    "wow", "where is this??", "haha no way", "love it", "so good!", "on my way", "ok see you at 8", "look at this",
    "is that yours?", "send me the others too", "can't wait!", "omg", "that made my day", "did you take this?",
    "nice one", "yes please", "who is coming tomorrow?", "thanks!!", "call me later", "not sure about that",
    "this is the one I meant", "best one so far", "told you so", "what do you think?",
)  # fmt: skip

HEADLINES = (
    "The quiet town that everyone is suddenly talking about",
    "What we learned from a year without a car",
    "Ten places to see before the summer ends",
    "How a small workshop survived three crises",
    "A weekend in the north, without a plan",
    "Why the old market may have to move",
    "The picture that divided the internet",
    "She kept it in a drawer for forty years",
    "Storm leaves thousands without power",
    "Local team wins after dramatic final",
    "The best things we ate this month",
    "Meet the people behind the camera",
)

SITES = (
    "dailyharbor.com", "thecourier.net", "openfields.org", "lumenmag.com", "northweekly.com", "tastelab.io",
    "citypages.co", "wanderlog.travel", "pixelpost.app", "gardenclub.org", "frameshare.com", "oldnews.press",
)  # fmt: skip

APPS = ("snapline", "Circles", "framely", "chirper", "Looply", "photonest", "Moments", "Hello!", "gather", "Postbox")

SECTIONS = (
    "Home", "World", "Culture", "Travel", "Food", "Sports", "Science", "Opinion", "Video", "Shop", "About", "Local",
)  # fmt: skip

PAGES = (
    "Timeline", "Messages", "Friends", "Groups", "Saved", "Events", "Photos", "Settings", "Explore", "Watch",
    "Bookmarks", "Lists", "Profile", "Drafts",
)  # fmt: skip

MENUS = ("File", "Edit", "View", "Image", "Window", "Tools", "Go", "Help", "Format", "Insert")

FILES = (
    "IMG_4821.jpg",
    "DSC00319.jpg",
    "PXL_2023.jpg",
    "holiday-07.png",
    "photo (3).jpg",
    "scan_112.tif",
    "final2.png",
)

FOLDERS = ("Recent", "Favorites", "Downloads", "Holiday 2023", "Family", "Camera", "Screenshots", "Shared", "Archive")

WHEN = (
    "just now",
    "2 min",
    "14 min ago",
    "1 h",
    "3 hours ago",
    "Yesterday",
    "2 d",
    "May 12",
    "Aug 3, 2022",
    "1 week ago",
)

COUNTS = ("12", "48", "117", "302", "941", "1.2K", "3,408", "8.7K", "21K", "1.4M")
