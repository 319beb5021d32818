"""On the device: bundles, engine builds by the device's own TensorRT, and their results back in the run.

Everything here runs on the base install (Python 3.10, numpy, no torch); only making a bundle needs the frameworks.
"""
