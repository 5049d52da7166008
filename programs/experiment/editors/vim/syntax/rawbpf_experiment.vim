" Vim syntax of experiments for `rawbpf run` (rawbpf help experiment; rawbpf-experiment(5)).
" A line's first word says what it is; what stands in braces is a probe's statements, assembly or C.
if exists('b:current_syntax')
  finish
endif
syntax include @experimentC syntax/c.vim
unlet! b:current_syntax
setlocal commentstring=#\ %s

syntax match experimentComment /#.*$/ contains=@Spell
syntax match experimentParameter /\$\$\|\${\w\+}\|\$\w\+/
syntax match experimentField /{[^{}]*}/ contained
syntax region experimentString start=/"/ skip=/\\./ end=/"/ oneline contains=experimentParameter,experimentField
syntax match experimentCharacter /'\%(\\.\|[^'\\]\)'/
syntax match experimentNumber /\<\%(0x\x\+\|\d\+\%(\.\d\+\)\=\%(ns\|us\|ms\|s\|m\|h\|k\|g\)\=\)\>/
syntax match experimentMap /@\h\w*/
syntax match experimentProbe /\<\%(kprobe\|kretprobe\|uprobe\|uretprobe\|usdt\|tracepoint\|raw_tp\|syscall\|profile\):\S\+/

" Lines
syntax match experimentLine /^\s*\%(param\|on\|map\|object\|license\|attach\|format\|wait\|events\|every\|print\|clear\|set\|trigger\|packet\|run\|measure\|expect\)\>/
syntax match experimentWay /\s\@<=\%(as\|top\|times\|until\|for\|to\|rejected\|key\|value\|entries\|interface\|egress\|netns\|nowhere\|workload\|table\|log2\|json\)\>/
syntax region experimentCommand matchgroup=experimentLine start=/^\s*workload\>/ end=/$/ oneline keepend contains=experimentString,experimentParameter,experimentComment

" Statements and values of a probe
syntax keyword experimentStatement let if else emit delete return
syntax keyword experimentHere pid tid ppid uid gid cpu comm nsecs cgroup random task probe arg0 arg1 arg2 arg3 arg4 arg5 ret
syntax match experimentFunction /\<\%(count\|sum\|avg\|min\|max\|stats\|hist\|lhist\|entries\|str\|kstr\|words\|cast\|hex\|ip\|ip6\|syscall\|ksym\|errno\|signal\|int\|swap16\|swap32\)\ze(/

" Programs in other languages
syntax region experimentAssembly matchgroup=experimentLine start=/^\s*asm\s*{\s*$/ end=/^\s*}\s*$/ contains=experimentComment,experimentString,experimentParameter,experimentNumber,experimentRegister,experimentDirective,experimentInstruction
syntax match experimentRegister /\<[rw]\%(10\|\d\)\>/ contained
syntax match experimentDirective /^\s*\.\h\w*/ contained
syntax keyword experimentInstruction contained call exit goto gotol if ll lock may_goto
syntax region experimentInC matchgroup=experimentLine start=/^\s*c\s*{\s*$/ end=/^}\s*$/ contains=@experimentC

highlight default link experimentComment Comment
highlight default link experimentParameter PreProc
highlight default link experimentField Special
highlight default link experimentString String
highlight default link experimentCharacter Character
highlight default link experimentNumber Number
highlight default link experimentMap Identifier
highlight default link experimentProbe Type
highlight default link experimentLine Keyword
highlight default link experimentWay Label
highlight default link experimentStatement Statement
highlight default link experimentHere Constant
highlight default link experimentFunction Function
highlight default link experimentRegister Identifier
highlight default link experimentDirective PreProc
highlight default link experimentInstruction Statement

let b:current_syntax = 'rawbpf_experiment'
