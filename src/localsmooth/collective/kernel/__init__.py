"""All that the truth of a count rests on: problem, threat, dual evaluation, proofs, attacks. No solver in reach."""
