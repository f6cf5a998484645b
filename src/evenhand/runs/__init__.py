"""What a run is: findings, record, folder, and the rule of which findings count."""
