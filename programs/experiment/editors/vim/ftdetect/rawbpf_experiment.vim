" Expect's scripts have the same ending: a file is an experiment unless its first line starts an interpreter.
autocmd BufNewFile,BufRead *.exp if getline(1) !~# '^#!' | setlocal filetype=rawbpf_experiment | endif
