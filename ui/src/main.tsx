import { App } from "./App";

// Airflow looks for the component by the name that the plugin gave it.
Reflect.set(globalThis, "Tidegate", App);
