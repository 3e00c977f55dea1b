"""From a few probes to settings: predict, shortlist, measure, decide."""
