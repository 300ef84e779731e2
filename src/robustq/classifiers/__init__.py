"""scikit-learn classifiers that know how robust their predictions are."""
