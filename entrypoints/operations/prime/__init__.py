"""`prime`: what an agent is told when its session begins."""
