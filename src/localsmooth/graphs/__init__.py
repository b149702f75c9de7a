"""Node classification on attributed graphs: data, clusters, models, the sparse sampler, certificates."""
