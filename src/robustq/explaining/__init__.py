"""Why a prediction is fragile, what would change it, and the nearest model that disagrees."""
