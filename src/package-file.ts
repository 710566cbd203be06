/** A file of the installed package. Modules at the top of src and all files of dist lie right below the package's folder. */
export const packageFile = (path: string): URL => new URL(`../${path}`, import.meta.url)

/** A module at the top of src as the entry of a thread: the bundled file, or a script that loads the source with tsx. */
export const threadEntry = (name: string): { readonly entry: URL | string; readonly eval: boolean } => {
  if (!import.meta.url.endsWith('.ts')) return { entry: packageFile(`dist/${name}.js`), eval: false }
  const [loader, file] = [
    packageFile('node_modules/tsx/dist/esm/api/index.mjs'),
    packageFile(`src/${name}.ts`),
  ]
  return {
    entry: `import('${loader}').then(({ tsImport }) => tsImport('${file}', '${file}'))`,
    eval: true,
  }
}
