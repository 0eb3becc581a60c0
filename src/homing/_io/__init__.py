"""Files, addresses, threads and devices."""
