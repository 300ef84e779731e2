"""What is timed: `make bench` runs it all and prints a line for each figure.

A bench is a module with a function `races` that yields races: something of ours against something
it is measured by, with a limit if one was promised. The rest runs, sums up and compares.
"""
