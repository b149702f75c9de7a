"""What proposes: linear programs, relaxations, search trees. Nothing here is believed."""
