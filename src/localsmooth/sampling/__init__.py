"""Draw, predict, tally: chunk by chunk, seeded and resumable."""
