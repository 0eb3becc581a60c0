"""Files, addresses, threads and devices: what every package builds on."""
