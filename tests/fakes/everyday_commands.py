"""What coding agents run all day in a project: builds, tests, git, searches, edits. None of it needs a question."""

from __future__ import annotations

ONE_LINE = r"""
ls
ls -la
ls -la src/ tests/
ls -R src | head -50
pwd
cat README.md
cat package.json | head -40
cat src/app.py src/util.py
head -n 60 src/app.py
tail -n 100 build.log
tail -20 logs/app.log | grep -i error
sed -n '1,120p' src/app.py
sed -n '40,80p' src/app.py | cat -n
nl -ba src/app.py | sed -n '10,30p'
wc -l src/*.py
find . -name '*.py' -not -path './.venv/*'
find . -type f -name '*.ts' | head -20
find src -name '*.py' | xargs wc -l
find . -type f -size +1M
find . -maxdepth 2 -type d
find . -name "*.test.js" -newer package.json
grep -rn "TODO" src/
grep -rn --include='*.py' "def main" .
grep -n "import" src/app.py
grep -c "" src/app.py
grep -E "error|warning" build.log | sort | uniq -c | sort -rn | head
grep -rl "oldName" src | head
rg "class .*Error" src
rg -n --hidden -g '!node_modules' "fetchUser"
rg --files | head -100
tree -L 2
du -sh node_modules
du -sh * | sort -h
df -h .
file dist/app.js
stat package.json
which python3 node npm
python3 --version
node --version && npm --version
git status
git status --short
git status -sb && git log --oneline -5
git log --oneline --graph --all | head -20
git log -p -1 src/app.py
git log --since="2 weeks ago" --pretty=format:'%h %an %s'
git diff
git diff --stat HEAD~3
git diff --cached
git diff main...HEAD -- src/
git show HEAD
git show HEAD:src/app.py | head -50
git blame -L 10,30 src/app.py
git branch -a
git branch --show-current
git checkout -b feature/login
git checkout main
git switch -c fix/typo
git switch main
git add .
git add -A && git commit -m "Add login form"
git add src/app.py tests/test_app.py
git commit -m "Fix crash when the config is missing"
git commit --amend --no-edit
git commit -am "wip"
git push
git push origin feature/login
git push -u origin HEAD
git pull
git pull --rebase origin main
git fetch --all --prune
git merge main
git rebase main
git stash
git stash pop
git stash list
git tag v1.2.0
git remote -v
git rev-parse HEAD
git ls-files | head
git ls-files | xargs wc -l | tail -1
git grep -n "deprecated"
git cherry-pick abc1234
git revert --no-edit HEAD
git reset HEAD src/app.py
git mv old.py new.py
git rm --cached build.log
git config user.name
git clone https://github.com/example/project.git
git submodule status
git describe --tags
git worktree list
git shortlog -sn
npm install
npm ci
npm test
npm run build
npm run lint -- --fix
npm run test:unit -- --watch=false
npm ls --depth=0
npm outdated
npx tsc --noEmit
npx eslint src --ext .ts,.tsx
npx prettier --check "src/**/*.ts"
npx prettier --write src/app.ts
npx jest src/login.test.ts
npx vitest run
yarn install --frozen-lockfile
yarn build
pnpm install
pnpm test
node index.js
node -e 'console.log(process.version)'
node -p "require('./package.json').version"
pytest
pytest -q
pytest tests/test_app.py -k login -x
pytest --cov=src --cov-report=term-missing
python -m pytest tests/ -v
python3 -m pytest -q 2>&1 | tail -20
.venv/bin/python -m pytest -q
python3 -m venv .venv
source .venv/bin/activate && pytest -q
python3 script.py
python3 manage.py migrate
python3 -c 'import sys; print(sys.version)'
python3 -c 'import json; print(json.load(open("package.json"))["version"])'
python3 -c "print(sum(range(10)))"
python3 -m json.tool package.json
python3 -m http.server 8000
python3 -m black src tests
ruff check src
ruff format .
mypy src
flake8 src --max-line-length 120
black --check .
isort .
tox -e py311
uv sync
uv run pytest
poetry install
poetry run pytest -q
pip list
pip show requests
cargo build
cargo build --release
cargo test
cargo test -- --nocapture
cargo clippy --all-targets -- -D warnings
cargo fmt
cargo run
go build ./...
go test ./...
go test -run TestLogin ./pkg/auth
go vet ./...
go mod tidy
gofmt -l .
go env GOPATH
make
make test
make -j4 build
make clean
cmake -B build -S .
cmake --build build
mkdir -p build && cd build && cmake .. && make -j4
ctest --test-dir build
gcc -O2 -Wall -o app main.c
g++ -std=c++17 main.cpp -o main && echo built
mvn -q test
gradle build
dotnet build
dotnet test
bundle install
bundle exec rspec
rails db:migrate
php artisan test
composer install
mix test
docker ps
docker images
docker build -t app .
docker logs app --tail 50
docker compose ps
kubectl get pods -n staging
kubectl logs deploy/app
mkdir -p src/components
mkdir tests/unit
touch src/__init__.py
cp config.example.json config.json
cp -r templates/basic src/templates
mv src/old.ts src/new.ts
rm build.log
rm -f dist/app.js dist/app.js.map
chmod +x scripts/run.sh
ln -s ../shared/config.js src/config-link.js
echo "hello" > notes.txt
echo "export const x = 1;" >> src/index.ts
printf 'line one\nline two\n' > notes.txt
sed -i 's/oldName/newName/g' src/app.py
sed -i '12d' src/app.py
sed -i -e 's/a/b/' -e '/^#/d' config.ini
perl -pe 's/foo/bar/g' src/app.py
awk '{print $1}' access.log | sort | uniq -c | sort -rn | head
awk -F, 'NR>1 {sum+=$3} END {print sum}' data.csv
awk '$3 > 100' data.txt
cut -d, -f1 data.csv | sort -u
jq '.dependencies' package.json
cat package.json | jq -r '.scripts | keys[]'
sort data.txt | uniq > unique.txt
diff src/a.py src/b.py
diff -u old.txt new.txt > change.patch
patch -p1 < change.patch
tar czf release.tar.gz dist
tar xzf archive.tar.gz
tar tzf archive.tar.gz | head
unzip -o assets.zip -d assets
gzip -k data.csv
xxd -l 64 image.png
curl -s http://localhost:3000/health
curl -sS https://api.github.com/repos/example/project | jq .stargazers_count
curl -fsSL -o data.json https://example.org/data.json
curl -I https://example.org
curl -X POST -H 'Content-Type: application/json' -d '{"name": "x"}' http://localhost:3000/users
wget -q https://example.org/file.txt
ps aux | grep node
lsof -i :3000
ss -tlnp
env FOO=1 npm test
NODE_ENV=test npm test
PYTHONPATH=src python3 -m pytest -q
CI=1 npm run build 2>&1 | tee build.log
time npm run build
timeout 60 pytest -q
for f in src/*.py; do python3 -m py_compile "$f"; done
for i in 1 2 3; do echo "run $i"; npm test; done
if [ -f package.json ]; then npm test; fi
test -d dist && ls dist || echo "no dist"
[ -f .nvmrc ] && cat .nvmrc
while read -r line; do echo "$line"; done < notes.txt
cd src && ls
cd src && grep -rn "main" .
cd frontend && npm install && npm run build
(cd backend && go test ./...)
npm test > test.log 2>&1; tail -30 test.log
echo $?
echo "PATH is $PATH"
date +%F
uname -a
whoami
set -e; npm ci; npm test
set -euo pipefail; make test
export NODE_ENV=test; npm test
VERSION=$(git describe --tags) && echo "$VERSION"
COUNT=$(grep -c TODO src/app.py); echo "todos: $COUNT"
psql -c 'SELECT count(*) FROM users'
sqlite3 app.db '.tables'
sqlite3 app.db 'select * from users limit 5'
redis-cli ping
terraform plan
terraform fmt -check
shellcheck scripts/run.sh
bash -n scripts/run.sh
bash scripts/run.sh
./scripts/run.sh
""".strip("\n").split("\n")

SEVERAL_LINES = [
    "cat > src/hello.py <<'EOF'\ndef hello():\n    return \"rm -rf / is only text\"\nEOF",
    "cat <<'EOF' > config.yaml\nname: app\nport: 3000\nEOF",
    "cat >> README.md <<EOF\n\n## Usage\n\nRun the tests first.\nEOF",
    "python3 - <<'EOF'\nimport json\nprint(json.dumps({'a': 1}))\nEOF",
    "git commit -m \"$(cat <<'EOF'\nAdd login\n\nIt checks the password.\nEOF\n)\"",
    "npm run lint && \\\n  npm test && \\\n  npm run build",
    "# run the tests\npytest -q\n",
    "mkdir -p out\ncp src/app.py out/\nls out",
]
EVERYDAY = [*ONE_LINE, *SEVERAL_LINES]

SCRIPTS = {
    "scripts/run.sh": "#!/bin/bash\nset -e\nnpm ci\nnpm test\n",
    "script.py": "import json\nprint(json.dumps({}))\n",
    "manage.py": "import sys\nfrom django.core.management import "
    "execute_from_command_line\nexecute_from_command_line(sys.argv)\n",
    "index.js": "const express = require('express')\nexpress().listen(3000)\n",
    ".venv/bin/activate": "",
}
"""Files of such a project that the commands run."""
