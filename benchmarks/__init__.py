"""What is timed: `make bench` runs it all and prints the tables."""
