import hypothesis

# Random tests are the same on every machine and every day.
hypothesis.settings.register_profile("seeded", derandomize=True, deadline=None, max_examples=200)
hypothesis.settings.load_profile("seeded")
