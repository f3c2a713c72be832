// Runs before the Perfetto UI does: says which trace it opens, and what it does then.
"use strict";
(() => {
  const { trace, parameters, packages } = window.perfdiag;

  // The UI keeps a copy of every trace in the browser's storage, for a page that is loaded again.
  // The server still has the trace then, and a copy would outlive both.
  Object.defineProperty(window, "caches", { value: undefined });

  // The UI puts its globals here before it opens a trace. Packages in this list are known to the
  // queries of the user.
  let globals;
  Object.defineProperty(window, "globals", {
    get: () => globals,
    set: (made) => {
      globals = made;
      globals.extraSqlPackages?.push(...packages);
    },
  });

  // Also when the page is loaded again: the UI has put an address of its own there by then.
  const url = new URL(trace, document.baseURI).href;
  history.replaceState(null, "", `#!/?${new URLSearchParams({ url, ...parameters })}`);
})();
