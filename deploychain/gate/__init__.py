"""The precision-regression gate: limits, baseline, noise, verdict. It decides and measures nothing."""
