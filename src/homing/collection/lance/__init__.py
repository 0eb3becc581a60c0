"""Collections stored in Lance datasets: in a local folder, or in a bucket shared by many machines."""
