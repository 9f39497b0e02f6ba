"""Attacks on a running gateway by a model that obeys the attacker: each test is one attempt, and each must fail."""
