"""Pictures of what a model sees: fields, components, clusters. The extra ``visualize`` brings what they need."""

from torch_gic.visualize.clusters import plot_clusters, plot_coarse_graph
from torch_gic.visualize.components import plot_components
from torch_gic.visualize.field import plot_field

__all__ = ["plot_clusters", "plot_coarse_graph", "plot_components", "plot_field"]
