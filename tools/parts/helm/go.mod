// Builds helm from its published module.
module longshore-parts/helm

go 1.26.0

require helm.sh/helm/v4 v4.3.1
