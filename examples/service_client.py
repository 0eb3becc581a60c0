"""Add photos to a collection that a server holds, and search it.

    homing serve holiday.homing                                    # in another terminal
    python examples/service_client.py http://127.0.0.1:8321 PHOTOS COPY

Needs: pip install -e '.[client]'

The environment variable HOMING_KEY holds the key, if the server asks for one.
"""

import os
import sys

import homing


def main(address: str, photos: str, copy: str) -> None:
    """Add the photos, search for the copy, and list what the server holds."""
    with homing.Client(address, key=os.environ.get("HOMING_KEY")) as client:
        for outcome in client.add(photos):
            print(f"{outcome.photo}: {outcome.state}")

        result = client.search(copy, k=3)
        print(f"{copy}: {result.verdict}")
        for match in result:
            print(f"  {match.photo}  false match {match.false_match_probability:.1e}")

        print(f"The server holds {sum(1 for _ in client.references())} photos.")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
