"""Statistics that hold up: permutation tests, bootstrap intervals, corrections, noise floors.

Every function takes plain arrays and gives a frozen result. Import the module you need, for
example ``from evenhand.stats import permutation``; nothing heavy is loaded here.
"""
