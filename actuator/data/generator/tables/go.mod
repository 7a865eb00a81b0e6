module longshore/actuator/data/generator/tables

go 1.24
