"""Prove how many predictions of a multi-output model one adversarial input can change."""
