import { defineConfig } from "vite";

// Airflow's UI lends its own React and router to plugins, as globals: two copies would not mix.
const LENT = {
  react: "React",
  "react/jsx-runtime": "ReactJSXRuntime",
  "react-router-dom": "ReactRouterDOM",
};

export default defineConfig({
  build: {
    outDir: "../src/tidegate/airflow/plugin/static",
    emptyOutDir: true,
    lib: { entry: "src/main.tsx", formats: ["iife"], name: "tidegate", fileName: () => "main.js" },
    rollupOptions: { external: Object.keys(LENT), output: { globals: LENT } },
    target: "es2022",
  },
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
});
