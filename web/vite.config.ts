import { defineConfig } from "vite";

// Scripts name each other by relative addresses, so that the same files work below any base path of a reverse proxy. In the
// page the addresses begin with /dashboard/, which the gateway replaces: the page is shown at several depths.
export default defineConfig({
  base: "./",
  experimental: {
    renderBuiltUrl: (name, { hostType }) => (hostType === "html" ? `/dashboard/${name}` : { relative: true }),
  },
  worker: {
    format: "es",
    rollupOptions: { output: { entryFileNames: "assets/[name]-[hash].js", chunkFileNames: "assets/[name]-[hash].js" } },
  },
  build: {
    outDir: "dist",
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: true,
    sourcemap: false,
    rollupOptions: { output: { entryFileNames: "assets/[name]-[hash].js", chunkFileNames: "assets/[name]-[hash].js", assetFileNames: "assets/[name]-[hash][extname]" } },
  },
});
