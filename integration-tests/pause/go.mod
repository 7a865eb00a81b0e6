module longshore-parts/pause

go 1.26.0
