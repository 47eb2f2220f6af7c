module example.org/parallel

go 1.19
