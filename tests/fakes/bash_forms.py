"""Command lines that change a folder, in many forms: a list, and a grammar that puts them together.

``@v`` stands for the folder that must not change, ``@c`` for a whole command. Only a sandbox runs these forms.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

VICTIM = "/victim"


def lines(text: str) -> list[str]:
    return text.strip("\n").split("\n")


ACTIONS = lines(r"""
rm @v/f
rm -f @v/f @v/g
rm -r @v/sub
rm -rf @v
unlink @v/f
rmdir @v/empty
shred -u @v/f
truncate -s 0 @v/f
touch @v/new
touch -d 2001-01-01 @v/f
mkdir @v/made
mkdir -p @v/a/b
mv @v/f @v/h
mv @v/f .
mv notes.txt @v/
cp notes.txt @v/f
cp -t @v notes.txt
cp -r src @v/
install -m 644 notes.txt @v/f
ln -sf /etc/passwd @v/f
ln notes.txt @v/hard
chmod 777 @v/f
chmod -x @v/run
chown 0 @v/f
dd if=/dev/null of=@v/f
tee @v/f
tee -a @v/f
sed -i s/v/w/ @v/f
sed -n 'w @v/out' notes.txt
sed 's/n/m/w @v/out' notes.txt
sort -o @v/f notes.txt
sort notes.txt --output=@v/f
uniq notes.txt @v/f
shuf -o @v/f notes.txt
split -b 2 notes.txt @v/x
csplit -f @v/x notes.txt 1
find @v -delete
find @v -type f -exec rm {} \;
find @v -name f -exec rm {} +
find @v -fprint @v/list
find . -fprintf @v/list %p
find @v -execdir touch z \;
tar -cf @v/a.tar notes.txt
tar -xf a.tar -C @v
tar -C @v -xf /w/a.tar
gzip @v/f
gzip -c notes.txt > @v/z.gz
xargs -a list rm
awk 'BEGIN { print "x" > "@v/f" }'
awk 'BEGIN { system("rm @v/f") }'
awk 'BEGIN { print "rm @v/f" | "sh" }'
python3 -c 'open("@v/f", "w")'
python3 -c 'import os; os.remove("@v/f")'
python3 -c 'import shutil as s; s.rmtree("@v")'
python3 -c '__import__("os").unlink("@v/f")'
python3 -c 'from pathlib import Path; Path("@v/f").unlink()'
python3 -m zipfile -c @v/z.zip notes.txt
perl -e 'unlink "@v/f"'
perl -i -pe s/v/w/ @v/f
perl -e 'open F, ">@v/f"'
git init -q @v/repo
git -C @v init -q
git --git-dir=@v/g init -q
git -c alias.x='!touch @v/new' x
echo x > @v/f
echo x >> @v/f
echo x >| @v/f
echo x &> @v/f
: > @v/f
> @v/f
cat notes.txt > @v/f
printf x > @v/new
exec 3> @v/f
cd @v; rm f
cd @v && touch new
cd @v || exit; rm -f *
pushd @v; touch new
(cd @v; touch new)
env -C @v touch new
make -f evil.mk V=@v
sh evil.sh @v
. ./evil.sh @v
bash evil.sh @v
./evil.sh @v
""")

AROUND = [
    *lines(r"""
@c
true; @c
true && @c
false || @c
( @c )
{ @c; }
if true; then @c; fi
if false; then :; else @c; fi
while true; do @c; break; done
until false; do @c; break; done
for i in 1; do @c; done
for ((i=0; i<1; i++)); do @c; done
case a in a) @c;; esac
f() { @c; }; f
function f { @c; }; f
echo $( @c )
echo "$( @c )"
x=$( @c )
[[ -n $( @c ) ]]
[ "$( @c )" ]
echo $(( $( @c ; echo 1 ) + 1 ))
cat <( @c )
echo x > >( @c )
@c & wait
! @c
echo x | @c
@c | cat
@c >/dev/null 2>&1
ls && ls || ls; @c
: ${x:=$( @c )}
echo ${y:-$( @c )}
trap "true" EXIT; @c
select i in 1; do @c; break; done <<< 1
export X=$( @c )
declare X=$( @c )
arr=( $( @c ) )
echo `@c`
"""),
    "cat <<E\n$( @c )\nE",
]

# For actions that are one simple command.
BEFORE = lines(r"""
env
env A=1
nice
nice -n 5
nohup
setsid -w
timeout 5
timeout -s KILL 5
stdbuf -oL
command
command --
exec
time
time -p
busybox
xargs
xargs -n 9
A=1
A=1 B=2
</dev/null
>/dev/null
2>/dev/null
ionice
flock lock
env -i /usr/bin/env
unshare -r
sudo
""")

# For actions without a single quote.
QUOTED = [
    *lines(r"""
sh -c '@c'
bash -c '@c'
bash -lc '@c'
bash --norc -c '@c'
bash -c -- '@c'
sh -ec '@c' x y
eval '@c'
eval eval '@c'
echo '@c' | sh
printf '%s\n' '@c' | bash
printf '@c' | bash -s
bash <<< '@c'
trap '@c' EXIT
X='@c'; eval "$X"
X='@c'; $X
X='@c'; sh -c "$X"
env -S '@c'
env X='@c' sh -c 'eval "$X"'
echo '@c' > s; sh s
echo '@c' > s.sh; . ./s.sh
echo '@c' > s; chmod +x s; ./s
echo '@c' | xargs -I% sh -c %
timeout 5 sh -c '@c'
find . -maxdepth 0 -exec sh -c '@c' \;
xargs -I% sh -c '@c' <<< 1
su -c '@c'
script -qc '@c' /dev/null
awk 'BEGIN { system("@c") }'
perl -e 'system "@c"'
python3 -c 'import os; os.system("@c")'
git -c alias.q='!@c' q
PROMPT_COMMAND='@c' bash --norc -i <<< true
BASH_ENV=<(echo '@c') bash -c :
coproc { @c; }; wait
mapfile -C '@c #' -c 1 x <<< 1
flock lock -c '@c'
"""),
    "sh <<'E'\n@c\nE",
    "cat <<'E' | bash\n@c\nE",
    "python3 - <<'E'\nimport os; os.system('''@c''')\nE",
]

# Other spellings of the folder.
SPELLINGS = (
    "/victim", "/vic*", "/v[i]ctim", "/victi?", "//victim", "/./victim", "/w/../victim", "../victim", "/{victim,}",
    '"/victim"',
    "/vic''tim", "/\\victim", "$'/\\x76ictim'", "$'\\057victim'", "~/../../victim", "$HOME/../../victim",
    "../w/../victim",
    "./../victim", "${X-/victim}", "src/../../victim", "link/../victim", "/w/link",
)  # fmt: skip
SET_BEFORE = (
    ("V=/victim; ", "$V"),
    ("V=/vic; V+=tim; ", "$V"),
    ("V=victim; ", "/$V"),
    ("read V <<< /victim; ", "$V"),
    ("printf -v V %s /victim; ", "$V"),
    ("V=$(echo /victim); ", '"$V"'),
    ("set -- /victim; ", "$1"),
    ("a=(/victim); ", "${a[0]}"),
    ("declare -n r=V; r=/victim; ", "$V"),
    ("eval V=/victim; ", "$V"),
    ("export V=/victim; ", "${V}"),
    ("for V in /victim; do :; done; ", "$V"),
    ("cd ..; ", "victim"),
    ("cd /; ", "victim"),
    ("cd nowhere; ", "../victim"),
    ("cd src; (cd /); cd ..; ", "../victim"),
    ("ln -s /victim l; ", "l"),
    ("V=/tmp; false || V=/victim; ", "$V"),
    ("V=src; V=/victim; ", "$V"),
)

LIST = [
    *lines(r"""
for f in /victim/*; do rm "$f"; done
ls /victim/* | xargs rm
ls /victim/* | xargs -n1 rm
find /victim -type f | xargs rm
find /victim -type f -print0 | xargs -0 rm -f
echo /victim/f | xargs rm
cat list | while read x; do rm "$x"; done
while read -r x; do rm "$x"; done < list
echo 'rm /victim/f' | sh
base64 -d <<< cm0gL3ZpY3RpbS9m | sh
$(echo rm) /victim/f
`echo rm` /victim/f
r""m /victim/f
r\m /victim/f
'rm' /victim/f
$'\x72m' /victim/f
/bin/r[m] /victim/f
/bin/rm /victim/f
X=rm; $X /victim/f
X=rm Y=/victim/f; $X $Y
false && x=echo; $x rm -rf /victim
x=echo; unset x; $x rm /victim/f
x=echo; x=; $x rm /victim/f
(x=echo); $x rm /victim/f
x=echo; eval $'\x78='; $x rm /victim/f
x=echo; read x < /dev/null; $x rm /victim/f
x=echo; printf -v x ''; $x rm /victim/f
x=echo; declare -n y=x; y=; $x rm /victim/f
f() { "$@"; }; f rm /victim/f
f() { touch "$1"; }; f /victim/new
f() { touch new; }; cd /victim; f
f() { cd /victim; }; f; touch new
echo() { rm /victim/f; }; echo hi
ls() { command rm /victim/f; }; ls
{rm,/victim/f}
{rm,-r,/victim}
rm{,} /victim/f
rm -- /victim/f
rm >x /victim/f
>x rm /victim/f
<list rm /victim/f
rm 2>&1 /victim/f
echo x >/victim/{a,b}
echo x > "$(echo /victim/f)"
echo x > /vic*/f
echo x > $HOME/../../victim/f
tee /victim/f <<< x
tee /victim/f < notes.txt
echo x | tee /victim/f >/dev/null
echo x | tee -a notes.txt /victim/f
echo x | dd of=/victim/f 2>/dev/null
echo x | sed 'w /victim/f'
sed -i.bak s/v/w/ /victim/f
sed -ni p /victim/f
sed --in-place s/v/w/ /victim/f
sed -e 1e'touch /victim/new' notes.txt
sed '1e touch /victim/new' notes.txt
sed 's/.*/touch \/victim\/new/e' notes.txt
sed -f evil.sed notes.txt
awk -f evil.awk notes.txt
awk 'BEGIN{printf "x" >> "/victim/f"}'
awk '{print > ("/vic" "tim/f")}' notes.txt
awk -v f=/victim/f 'BEGIN{print "x" > f}'
awk 'BEGIN{"rm /victim/f" | getline}'
python3 -c 'print(1)' > /victim/f
python3 -c 'p="/vic"+"tim/f"; open(p,"w")'
python3 -c 'open(chr(47)+"victim/f","w")'
python3 -c 'f=open; f(chr(47)+"victim/f","w")'
python3 -c 'import pathlib; pathlib.Path(chr(47),"victim","f").unlink()'
python3 -c 'from pathlib import Path as P; P(chr(47)+"victim/f").write_text("")'
python3 -c 'import io; io.open(chr(47)+"victim/f","w")'
python3 -c 'getattr(__import__("os"),"remove")(chr(47)+"victim/f")'
python3 -c 'print.__self__.open(chr(47)+"victim/f","w")'
python3 -c 'import sys; sys.modules["os"].remove(chr(47)+"victim/f")'
python3 -c 'import json; json.codecs.open(chr(47)+"victim/f","w")'
python3 -c 'import tempfile; tempfile.NamedTemporaryFile(dir=chr(47)+"victim",delete=False)'
python3 -c 'import pathlib; pathlib.os.remove(chr(47)+"victim/f")'
python3 -c 'import contextlib; contextlib.os.remove(chr(47)+"victim/f")'
python3 -c 'from pathlib import os as o; o.remove(chr(47)+"victim/f")'
python3 -c 'import random; random._os.remove(chr(47)+"victim/f")'
python3 -c 'import platform as p; p.os.remove(chr(47)+"victim/f")'
python3 -c 'def f(open): open(chr(47)+"victim/f","w")
f(open)'
python3 -c 'import functools; functools.partial(open, chr(47)+"victim/f")("w")'
python3 -c 'list(map(open, [chr(47)+"victim/new"], ["w"]))'
python3 -c 'import types; print((lambda: 0).__globals__["__builtins__"].open(chr(47)+"victim/f","w"))'
python3 -c 'import evil'
python3 evil.py
python3 ./evil.py
python3 < evil.py
python3 - < evil.py
cat evil.py | python3
python3 -m evil
python3 -Ic 'open("/victim/f","w")'
python3 -uc 'open("/victim/f","w")'
python3 -W ignore -c 'open("/victim/f","w")'
python3 -c"open('/victim/f','w')"
python3 -m timeit -n1 'open(chr(47)+"victim/f","w")'
PYTHONSTARTUP=evil.py python3 -i < /dev/null
perl -e 'system("rm /victim/f")'
perl -e '`rm /victim/f`'
perl -ne 'unlink "/victim/f"' notes.txt
perl -pe 's/.*/unlink("\/victim\/f")/e' notes.txt
perl -e 'unlink "/vic"."tim/f"'
perl -e 'print {open my $f, ">", chr(47)."victim/f"} 1'
perl evil.pl
cd .. && rm victim/f
cd ../victim && rm f
cd /victim && cd . && rm f
cd /victim; (cd /w); touch new
cd src; cd nowhere; touch ../../victim/new
cd nowhere; touch ../victim/new
cd nowhere || touch ../victim/new
cd link && touch new
cd ~ && touch ../../victim/new
cd -P link; touch new
cd - ; touch /victim/new
CDPATH=/ cd victim && touch new
pushd /victim > /dev/null && touch new
pushd /victim; popd; touch /victim/new
while true; do cd ..; touch victim/new && break; done
cd src && cd .. && cd .. && touch victim/new
touch link/new
echo x > link/f
cp notes.txt link/
rm link/f
mv notes.txt link/f
touch */new
cp notes.txt li*/f
ln -s /victim l2 && touch l2/new
ln -s .. up; touch up/victim/new
cp -l /victim/f hard && echo x > hard
cp -s /victim/f soft && echo x > soft
ln /victim/f hard && echo x > hard
cp -a link l3 && touch l3/new
mkdir d; mv link d/; touch d/link/new
touch -- /victim/-x
touch -r notes.txt /victim/f
install -d /victim/d
install -D notes.txt /victim/a/b
mktemp -p /victim
mktemp /victim/XXXX
mktemp --tmpdir=/victim
TMPDIR=/victim mktemp
mkfifo /victim/p
mknod /victim/n p
rsync -a src/ /victim/
tar xf a.tar --directory /victim
tar xf a.tar --one-top-level=/victim/x
tar cf - src | tar xf - -C /victim
tar cf - src | (cd /victim && tar xf -)
tar cf x.tar --checkpoint=1 --checkpoint-action=exec='touch /victim/new' src
tar cf x.tar --checkpoint=1 --checkpoint-action=exec=./hook src
tar xf a.tar --to-command='tee /victim/f'
tar xf a.tar --to-command=./hook
tar -I 'sh -c "touch /victim/new; cat"' -cf x.tar src
tar cf x.tar --use-compress-program=./hook src
tar cf x.tar --use-compress-prog=./hook src
tar --absolute-names -xf abs.tar
tar xPf abs.tar
cpio -p /victim <<< notes.txt
gzip -r /victim
gzip -k /victim/f
zip /victim/z.zip notes.txt
xz -k /victim/f
git clone -q . /victim/clone
git --work-tree=/victim checkout -f
GIT_DIR=/victim/g git init -q
GIT_WORK_TREE=/victim git checkout -f HEAD -- .
git -c core.pager='touch /victim/new' -p log
git -c core.fsmonitor='touch /victim/new; false' status
git -c core.fsmonitor=./hook status
git -c core.editor='touch /victim/new' commit --allow-empty
git -c core.editor=./hook commit --allow-empty
git -c diff.external=./hook diff HEAD
git -c diff.external='touch /victim/new; true' diff --ext-diff HEAD
git config alias.z '!touch /victim/new' && git z
git config alias.z '!./hook' && git z
git config core.fsmonitor ./hook && git status
git config core.fsmonitor 'touch /victim/new' && git status
git diff --no-index --output=/victim/out notes.txt src/a.txt
git log --output=/victim/out
git archive -o /victim/a.tar HEAD
git format-patch -o /victim --root HEAD
git bundle create /victim/b HEAD
git grep -O'touch /victim/new;' note
git grep -O./hook note
git worktree add /victim/wt
git submodule foreach 'touch /victim/new'
git rebase -x 'touch /victim/new' HEAD~0
git bisect run touch /victim/new
git init --template=/w --separate-git-dir=/victim/g x
GIT_EXTERNAL_DIFF='touch /victim/new;' git diff HEAD
GIT_EXTERNAL_DIFF=./hook git diff HEAD
GIT_SSH_COMMAND='touch /victim/new;' git ls-remote ssh://x/y
GIT_SSH=./hook git ls-remote ssh://x/y
GIT_PAGER='touch /victim/new;' git -p log
PAGER='touch /victim/new;' git -p log
EDITOR='touch /victim/new;' git commit --allow-empty
GIT_EDITOR=./hook git commit --allow-empty
git -c protocol.ext.allow=always clone -q 'ext::touch /victim/new' x
git --exec-path=bin ls
make -f - <<< 'a: ; touch /victim/new'
printf 'a:\n\ttouch /victim/new\n' | make -f -
printf 'a:\n\ttouch /victim/new\n' | make -f /dev/stdin
cat evil.mk | make -f - V=/victim
cat evil.mk | make -f- V=$PWD/../victim
printf 'a:;touch /victim/new' | make --file=-
printf 'a:;touch /victim/new' | make --makefile=/dev/stdin
make --eval='a: ; touch /victim/new' a
make X='$(shell touch /victim/new)' -f x.mk
make SHELL=/bin/sh -f evil.mk V=/victim
ed -s /victim/f <<< $'1d\nw\nq'
printf '1d\nw\nq\n' | ed -s /victim/f
printf '!touch /victim/new\nq\n' | ed -s
ex -sc '1d|x' /victim/f
vi -es -c '1d|x' /victim/f
vim -es -c '!touch /victim/new' -c q
dc -e '!touch /victim/new'
m4 <<< 'syscmd(`touch /victim/new`)'
sqlite3 /victim/x.db 'create table t(a)'
sqlite3 :memory: '.shell touch /victim/new'
sqlite3 :memory: '.system ./hook'
sqlite3 :memory: "attach '/victim/y.db' as y; create table y.t(a)"
echo '.shell touch /victim/new' | sqlite3
sqlite3 x.db ".output /victim/out" "select 1"
curl -so /victim/f file:///w/notes.txt
curl -s file:///w/notes.txt --output /victim/f
curl -s --output-dir /victim -O file:///w/notes.txt
curl -sK evil.curl
wget -qO /victim/f file:///w/notes.txt
openssl rand -out /victim/r 8
ssh-keygen -q -t ed25519 -N '' -f /victim/k
script -c 'touch /victim/new' /dev/null
script -c ./hook /dev/null
script /victim/typescript -c true
strace -o /victim/trace true
time -o /victim/t true
/usr/bin/time -o /victim/t true
setsid touch /victim/new
setsid sh -c 'touch /victim/new' & wait
nohup touch /victim/new
( touch /victim/new & )
busybox rm /victim/f
busybox sh -c 'rm /victim/f'
toybox rm /victim/f
parallel rm ::: /victim/f
env -S 'rm /victim/f'
env -vS 'rm /victim/f'
env --split-string='rm /victim/f'
env -u X -- rm /victim/f
nice -n 5 -- rm /victim/f
timeout --signal=KILL 5 rm /victim/f
stdbuf -o L rm /victim/f
xargs -I{} rm {} <<< /victim/f
xargs rm <<< /victim/f
xargs -a list -n1 rm
xargs -a list touch -d 2001-01-01
xargs sh -c 'rm "$@"' _ < list
printf '/victim/f' | xargs touch -d 2001-01-01
find . -maxdepth 0 -exec touch /victim/new \;
find / -maxdepth 1 -name 'vic*' -exec touch {}/new \;
find / -maxdepth 2 -path '*tim/f' -delete
find .. -maxdepth 2 -name f -delete
find "$PWD/../victim" -name f -delete
find -L link -name f -delete
find link/ -name f -delete
find -L . -name f -exec touch -d 2001-01-01 {} +
fd . /victim -x rm
exec rm /victim/f
exec -a x rm /victim/f
command -p rm /victim/f
builtin command rm /victim/f
builtin eval 'rm /victim/f'
eval "rm /victim/f"
eval rm /victim/f
eval 'r''m' /victim/f
eval "$(echo rm /victim/f)"
eval "$(printf '\162\155 /victim/f')"
source evil.sh
. evil.sh
. ./hook
./hook
sh hook
source /dev/stdin <<< 'rm /victim/f'
. <(echo rm /victim/f)
bash <(echo rm /victim/f)
bash -c "$(cat evil.sh)"
bash -c 'rm "$0"' /victim/f
bash -c '"$@"' _ rm /victim/f
sh -c 'rm $1' _ /victim/f
sh -s < evil.sh
sh < evil.sh
cat evil.sh | sh
sh ./evil.sh
sh -x evil.sh
bash --rcfile hook -i < /dev/null
bash -O extglob -c 'rm /victim/f'
BASH_ENV=hook bash -c true
ENV=./hook sh -i < /dev/null
PROMPT_COMMAND='rm /victim/f' bash --norc -i <<< true
PS4='$(rm /victim/f)' bash -xc true
PS0='$(rm /victim/f)' bash --norc -i <<< true
PATH=/w/bin:$PATH ls
PATH=bin ls
export PATH=/w/bin:$PATH; ls
hash -p /bin/rm ls; ls /victim/f
hash -p ./hook ls; ls
trap 'rm /victim/f' EXIT
trap 'rm /victim/f' DEBUG; true
trap 'rm /victim/f' USR1; kill -USR1 $$
trap ./hook EXIT
mapfile -C 'rm /victim/f;' -c 1 x < notes.txt
mapfile -C ./hook -c 1 x < notes.txt
complete -C 'rm /victim/f' x; compgen -C 'rm /victim/f'
compgen -C ./hook
a='b[$(rm /victim/f)]'; (( a ))
a='b[$(rm /victim/f)]'; echo $(( a ))
a='b[$(rm /victim/f)]'; [[ $a -eq 1 ]]
a='b[$(rm /victim/f)]'; let a
a='b[$(rm /victim/f)]'; test -v "$a"
a='b[$(rm /victim/f)]'; unset "$a"
a='b[$(rm /victim/f)]'; declare -i x=a
a='b[$(rm /victim/f)]'; printf -v "$a" x
a='b[$(rm /victim/f)]'; read "$a" <<< x
a=$'b[\x24(rm /victim/f)]'; (( a ))
a=$'b[\x24(./hook)]'; (( a ))
a=$'b[\x24(./hook)]'; [ -v "$a" ]
a=$'b[\x24(./hook)]'; [[ -v $a ]]
a=$'b[\x24(./hook)]'; [[ $a -gt 1 ]]
a=$'b[\x24(./hook)]'; echo "${c[a]}"
a=$'b[\x24(./hook)]'; c[a]=1
a=$'b[\x24(./hook)]'; declare -i x; x=a
a=$'b[\x24(./hook)]'; let x=a
a=$'b[\x24(./hook)]'; echo ${PATH:a:1}
a=$'b[\x24(./hook)]'; unset "$a"
a=$'b[\x24(./hook)]'; wait -p "$a"
a=$'b[\x24(./hook)]'; for ((i=a; i<1; i++)); do :; done
d='$'; a="b[$d(rm /victim/f)]"; (( a ))
a='b[$(rm /victim/f)]'; echo ${x:a}
x='$(rm /victim/f)'; echo "${x@P}"
x=$'\x24(./hook)'; echo "${x@P}"
echo "${x:=$(rm /victim/f)}"
echo "${y[$(rm /victim/f)]}"
echo $[ $(rm /victim/f) ]
((1)) && rm /victim/f
case $(rm /victim/f) in *) ;; esac
case x in $(rm /victim/f)) ;; esac
for x in $(rm /victim/f); do :; done
echo x | while read y; do rm /victim/f; done
echo x | { read y; rm /victim/f; }
if rm /victim/f; then :; fi
while rm /victim/f; do :; done
until rm /victim/f; do break; done
[ -e /victim/f ] && rm /victim/f
[[ -e /victim/f ]] && rm /victim/f
test -e /victim/f && rm /victim/f
! rm /victim/f
time rm /victim/f
coproc rm /victim/f; wait
coproc X { rm /victim/f; }; wait
rm /victim/f &
rm /victim/f;
rm	/victim/f
rm /victim/f # comment
echo $'a\'b'; rm /victim/f
echo 'a'\''b'; rm /victim/f
echo "a\"b"; rm /victim/f
echo a\;b; rm /victim/f
echo a#b; rm /victim/f
echo a"#"; rm /victim/f
echo ${#x}; rm /victim/f
echo $#; rm /victim/f
echo `echo \`rm /victim/f\``
echo "`rm /victim/f`"
echo "$(echo "$(rm /victim/f)")"
echo "${x:-"$(rm /victim/f)"}"
echo ${x/#/$(rm /victim/f)}
echo ${x%$(rm /victim/f)}
cat <(rm /victim/f)
tee >(rm /victim/f) < notes.txt
diff <(ls) <(rm /victim/f)
echo x 2> /victim/f
echo x 3>/victim/f
exec 5>/victim/f
exec {fd}>/victim/f
echo x <>/victim/f >&0
cat 1<>/victim/f
echo x >&/victim/f
ls nothing |& tee /victim/f
ls nothing &>> /victim/f
rm /v*/f
rm /*/f
rm /victim/?
rm /victim/[f]
rm ~+/../victim/f
rm ~/../../victim/f
rm ${PWD}/../victim/f
rm "${PWD%/*}/victim/f"
rm $(dirname $PWD)victim/f
rm $OLDPWD/victim/f
rm /proc/self/root/victim/f
rm /proc/self/cwd/../victim/f
rm /dev/fd/../../../victim/f
echo x > /proc/self/root/victim/f
rm -- .*/victim/f
touch .?/victim/new
touch new; rm -rf .git
rm -rf .git
mv .git git
rm .git/HEAD
echo x > .git/HEAD
echo x >> .git/config
cp notes.txt .git/hooks/pre-commit
ln -sf ../notes.txt .git/hooks/pre-commit
sed -i s/a/b/ .git/config
tee .git/hooks/post-checkout < notes.txt
find .git -name HEAD -delete
find . -name HEAD -delete
chmod -R 000 .git
touch .git/new
touch .g*/new
touch ./.git/new
touch src/../.git/new
install notes.txt .git/x
dd if=notes.txt of=.git/HEAD
tar xf a.tar -C .git
cd .git && touch new
cd .git/hooks; cp ../../notes.txt pre-commit
python3 -c 'open(".git/HEAD","w")'
truncate -s0 .git/HEAD
git config core.hooksPath x
git update-ref -d HEAD
git branch -D main
git gc --prune=now
git stash clear
rm -r src/../../victim/sub
awk '1' notes.txt > /victim/f
env > /victim/f
env -u A touch /victim/new
env --chdir=/victim touch new
env PATH=bin ls
env BASH_ENV=hook bash -c true
sort --compress-program=./hook -S1 notes.txt
sort -T /victim --output=/victim/f notes.txt
rg --pre ./hook x notes.txt
man -P ./hook ls
less -o /victim/f notes.txt < notes.txt
tree -o /victim/f
date > /victim/f
printf '%s' x > /victim/f
command -v ls > /victim/f
git status > /victim/f
gcc -o /victim/o x.c
cat notes.txt | tee >(cat > /victim/f)
read x < notes.txt > /victim/f
{ echo a; echo b; } > /victim/f
( echo a ) >> /victim/f
if true; then echo x; fi > /victim/f
while read l; do echo $l; done < notes.txt > /victim/f
for i in 1 2; do echo $i; done > /victim/f
case a in a) echo x;; esac > /victim/f
f() { echo x; } > /victim/f; f
[[ a ]] > /victim/f
(( 1 )) > /victim/f
x=1 > /victim/f
true && echo x > /victim/f
cd src && echo x > ../../victim/f
cd src; echo x > ../../victim/f
exec 3<../victim/f; echo x > /dev/fd/3
echo x 3<../victim/f > /dev/fd/3
cp notes.txt /dev/stdin < /victim/f
cp notes.txt /dev/fd/0 < /victim/f
echo x < /victim/f > /dev/stdin
{ echo x > /dev/stdin; } < /victim/f
while read l; do echo y > /dev/stdin; done < /victim/f
tar xf a.tar --transform='s,^,link/,'
tar xf a.tar --xform='flags=r;s,notes,link/z,'
mkdir -p t/d/hooks; echo x > t/d/hooks/pre-push; tar cf x.tar --transform s,d/,.git/, -C t d; tar xf x.tar
printf -- '--- /dev/null\n+++ .git/hooks/pre-push\n@@ -0,0 +1 @@\n+x\n' > p.diff; patch -p0 < p.diff
git worktree add link/wt
git --work-tree link checkout HEAD -- notes.txt
git log -1 --output link/f
git format-patch -1 -o link
git bundle create link/b HEAD
git cherry-pick --strategy=../../w/hook HEAD
vim -es '+wq! link/f' notes.txt
view -es -c '!./hook' -c q
strace -o '|./hook' true
setarch -R ./hook
run-parts --regex hook .
perl -pi'../victim/*' -e 's/n/w/' notes.txt
git fetch --upload-p=./evil.sh .
git clone -u ./evil.sh . c2
git clone --upl=./evil.sh . c2
git clone -c core.fsmonitor=./evil.sh . c3
tar tf a.tar --index-file=/victim/f
tar tvf a.tar --index-f=../victim/f
tar tf a.tar --checkpoint=1 --checkpoint-act='exec=./evil.sh'
xxd notes.txt ../victim/f
xxd -p notes.txt /victim/f
uniq - ../victim/f < notes.txt
ptx -G notes.txt ../victim/f
perl -pe 's/a/b/g' './evil.sh|'
perl -wne print './evil.sh |'
perl -e 'print "@{[unlink chr(47).q(victim).chr(47).q(f)]}"'
eval 'cd /victim'; touch new
command cd /victim; touch new
builtin cd /victim; touch new
touch */f
touch ./*/f
rm */f
rm -f l*/f
truncate -s 0 l*/f
tee l*/f < notes.txt
cp notes.txt l*/
cp --target=../victim notes.txt
cp -vt ../victim notes.txt
cp --t ../victim notes.txt
cp -at ../victim notes.txt src
make -pf evil.mk V=link
gcc -c x.c -olink/new
gcc -MMD -MFlink/new -c x.c
split --filter=./evil.sh notes.txt
curl --conf evil.curl
sqlite3 x.db '.sh ./evil.sh'
sqlite3 x.db ".output link/f"
sqlite3 x.db "attach 'link/n' as a; create table a.b(c)"
sqlite3 x.db "vacuum into 'link/n'"
sqlite3 -cmd '.sh ./evil.sh' x.db 'select 1'
sqlite3 x.db "select writefile('link/f','x')"
node -e "Array['constructor']('process.mainModule.require(\'fs\').unlinkSync(\'\\x2fvictim/f\')')()"
python3 -c "from pathlib import Path; Path('/'.join(['','victim','f'])).replace('stolen')"
python3 -c "import io as q; q.FileIO('/'.join(['','victim','f']),'w')"
python3 -c "import operator; from pathlib import Path; operator.methodcaller('unlink')(Path(chr(47)+'victim/f'))"
python3 -c "import string,random; string.Formatter().get_field('0._os.remove',(random,),{})[0](chr(47)+'victim/f')"
python3 -c "import random; y=random.__dict__['_os']; y.remove('/'.join(['','victim','f']))"
python3 -c "from random import _os as o; o.remove('/'.join(['','victim','f']))"
python3 -c "f=open('notes.txt','rb',0); type(f)('/'.join(['','victim','f']),'w')"
python3 -c "f=open('notes.txt'); g=type(f.buffer.raw); g('/'.join(['','victim','f']),'w')"
python3 -c "import sys; type(sys.stdout.buffer.raw)('/'.join(['','victim','f']),'w')"
python3 -c "open('link/f', 'w')"
"""),
    "((x=1<<E))\nrm /victim/f\nE",
    "touch li\\\nnk/new",
    'awk \'BEGIN{print "a" \\\n > "/victim/f"}\'',
    "python3 -c \"import typing\nclass A:\n    x: \\\"__import__('o'+'s').remove('/'.join(['','victim','f']))\\\"\n"
    'typing.get_type_hints(A)"',
    "python3 -c \"import random\nmatch random:\n    case object(_os=o): o.remove('/'.join(['','victim','f']))\"",
    "python3 -c \"import pathlib\nq=pathlib.Path('/'.join(['','victim','f']))\n"
    "Path=lambda x:q\nPath('a').write_text('x')\"",
    "rm \\\n  /victim/f",
    "true # comment\nrm /victim/f",
    "echo '# comment\n' ; rm /victim/f",
    'echo "a\nb"; rm /victim/f',
    "echo a \\\n# it's\nrm /victim/f\n# it's",
    "echo a\r# ; rm /victim/f",
    "echo a\u00a0# ; rm /victim/f",
    "echo \\ # ; rm /victim/f",
    "cat <<E; rm /victim/f\ntext\nE",
    "cat <<E && rm /victim/f\ntext\nE",
    "cat <<'A' <<'B'; rm /victim/f\na\nA\nb\nB",
    "cat <<-E\n\ttext\n\tE\nrm /victim/f",
    "cat <<\\E\ntext\nE\nrm /victim/f",
    'cat <<"E F"\ntext\nE F\nrm /victim/f',
    "cat <<''\ntext\n\nrm /victim/f",
    "cat <<$'E'\ntext\n$E\nrm /victim/f",
    "cat <<E\n`rm /victim/f`\nE",
    "cat <<E\n${x:-$(rm /victim/f)}\nE",
    "cat <<E\n$((`rm /victim/f`))\nE",
    "cat << E #'\n$(rm /victim/f)\nE",
    "cat <<E\ntext\nE \nE\nrm /victim/f",
    "cat <<'E' > /victim/f\ntext\nE",
    "cat > /victim/f <<'E'\ntext\nE",
    "cat <<E | tee /victim/f\ntext\nE",
    "echo \"<<'E'\"\nrm /victim/f\nE",
    "echo $((1<<2))\nrm /victim/f\n2",
    "shopt -s expand_aliases\nalias x='rm /victim/f'\nx",
    "shopt -s extglob\nrm /victim/@(f|g)",
    "set -o posix\nrm /victim/f",
    "if true\nthen\nrm /victim/f\nfi",
    "f()\n{\nrm /victim/f\n}\nf",
    "case x in\nx)\nrm /victim/f\n;;\nesac",
    "case x in x) true ;& y) rm /victim/f ;; esac",
    "for x do :; done; rm /victim/f",
    "if [[ a ]] then rm /victim/f; fi",
    "python3 <<'E'\nopen('/victim/f','w')\nE",
    "python3 <<'E'\nopen(chr(47)+'victim/f','w')\nE",
    "bash <<'E'\nrm /victim/f\nE",
    "cat > s <<'E'\nrm /victim/f\nE\nsh s",
    "cat > s.py <<'E'\nimport os; os.remove('/victim/f')\nE\npython3 s.py",
    "printf 'rm /victim/f' > s && sh s",
    "cp evil.sh x.sh && sh x.sh /victim",
    "git mv evil.sh y.sh && sh y.sh /victim",
    "# \\\nrm /victim/f",
    "echo a\\\\\nrm /victim/f",
    "echo 'a\\'; rm /victim/f",
    "echo $'\\''; rm /victim/f; echo '",
]


def grammar(count: int, seed: int) -> Iterator[str]:
    """Put actions, spellings and wrappings together by chance."""
    chance = random.Random(seed)
    made: set[str] = set()
    while len(made) < count:
        form = _one(chance)
        if form is not None and form not in made:
            made.add(form)
            yield form


def _one(chance: random.Random) -> str | None:
    action = chance.choice(ACTIONS)
    prefix, spelling = "", VICTIM
    kind = chance.random()
    if kind < 0.25:
        prefix, spelling = chance.choice(SET_BEFORE)
    elif kind < 0.7:
        spelling = chance.choice(SPELLINGS)
    has_quotes = "'" in action or "'" in spelling
    is_simple = not any(mark in action for mark in ";|&>(:") and not action.startswith(("cd", "exec", "pushd", "."))
    command = action.replace("@v", spelling)
    if is_simple and chance.random() < 0.4:
        command = f"{chance.choice(BEFORE)} {command}"
    if not has_quotes and chance.random() < 0.35:
        command = chance.choice(QUOTED).replace("@c", command)
    around = chance.choice(AROUND) if chance.random() < 0.6 else "@c"
    if "\n" in command and around != "@c":
        return None
    return prefix + around.replace("@c", command)
