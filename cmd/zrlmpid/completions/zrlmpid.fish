# fish completion for zrlmpid

complete -c zrlmpid -f
complete -c zrlmpid -l addresses -x -d 'with --cluster: address pool for the ranks, as in 127.0.0.1-127.0.0.4 or 10.1.0.0/24'
complete -c zrlmpid -l check-config -d 'check the configuration and its TLS files, print the errors, and exit'
complete -c zrlmpid -l cluster -r -F -d 'file instead of a configuration: upstream\'s cluster.json or the answer of the resource manager'
complete -c zrlmpid -l config -r -F -d 'configuration file (-: standard input)'
complete -c zrlmpid -l control -r -F -d 'control socket; overrides configuration and environment'
complete -c zrlmpid -l fpga -x -d 'with --cluster: ranks to treat as FPGAs, if the file lists them as both CPU and FPGA'
complete -c zrlmpid -l host -x -d 'with --cluster: ranks of host programs, as in 0,3 (default: the first CPU rank)'
complete -c zrlmpid -l http -x -d 'address of status page, metrics and health, as in 127.0.0.1:9627; "" disables HTTP; overrides configuration and environment'
complete -c zrlmpid -l kernel -x -d 'with --cluster: kernel of the stand-ins: echo, ring, sink, source, jacobi, kmeans, matvec, backsub, "exec:/path/prog args" or "rtl:/path/simulator args"'
complete -c zrlmpid -l log-level -x -d 'log level: debug, info, warn or error; overrides configuration and environment'
complete -c zrlmpid -l print-config -d 'print the configuration with all defaults, and exit'
complete -c zrlmpid -l standins -d 'with --cluster: run stand-ins for all FPGA ranks'
complete -c zrlmpid -l version -d 'print the version and exit'
complete -c zrlmpid -l watch -d 'reload the configuration when its file or its TLS files change, as in a volume of Kubernetes'
