// Puts what Vite built where the gateway serves it: each file with a compressed copy beside it, and the hash of the sources,
// by which a test sees whether somebody changed a source and forgot to build. `--check` compares instead of writing.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";

const web = dirname(fileURLToPath(import.meta.url));
const dist = join(web, "dist");
const built = join(web, "..", "src", "hermes", "servers", "dashboard", "built");
const SOURCES = ["finish.mjs", "index.html", "package-lock.json", "package.json", "public", "src", "tsconfig.json", "vite.config.ts"];
const COMPRESSED = /\.(js|css|html|svg|webmanifest)$/;

function filesBelow(folder, top = folder) {
  return readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(join(folder, entry.name), top) : [relative(top, join(folder, entry.name)).split(sep).join("/")]));
}

function hashOfSources() {
  const names = SOURCES.flatMap((name) => (/\./.test(name) ? [name] : filesBelow(join(web, name)).map((below) => `${name}/${below}`)));
  const hash = createHash("sha256");
  for (const name of names.sort()) hash.update(`${name}\0${createHash("sha256").update(readFileSync(join(web, name))).digest("hex")}\n`);
  return hash.digest("hex");
}

const made = new Map(filesBelow(dist).map((name) => [name, readFileSync(join(dist, name))]));
made.set("build.json", Buffer.from(`${JSON.stringify({ sources: hashOfSources() }, null, 2)}\n`));

if (process.argv.includes("--check")) {
  const wrong = [];
  const there = new Set(filesBelow(built));
  for (const [name, bytes] of made) {
    if (!there.delete(name) || !readFileSync(join(built, name)).equals(bytes)) wrong.push(name);
    if (COMPRESSED.test(name) && (!there.delete(`${name}.gz`) || !gunzipSync(readFileSync(join(built, `${name}.gz`))).equals(bytes))) wrong.push(`${name}.gz`);
  }
  wrong.push(...there);
  if (wrong.length) {
    console.error(`✗ Built files differ from their sources: ${wrong.join(", ")}\n  Build them: ./scripts/web build`);
    process.exit(1);
  }
  console.log(`✓ ${made.size} built files match their sources`);
} else {
  rmSync(built, { recursive: true, force: true });
  let packed = 0;
  for (const [name, bytes] of made) {
    const path = join(built, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
    if (!COMPRESSED.test(name)) continue;
    const small = gzipSync(bytes, { level: 9 });
    packed += small.length;
    writeFileSync(`${path}.gz`, small);
  }
  console.log(`✓ ${made.size} files in ${relative(process.cwd(), built)}, ${Math.round(packed / 1024)} KB compressed`);
}
