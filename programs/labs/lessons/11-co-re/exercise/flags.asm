.license "GPL"
.program where "raw_tp/sched_process_exec"
    r0 = @task.flags
    exit
