/** A file of the installed package. Modules at the top of src and all files of dist lie right below the package's folder. */
export const packageFile = (path: string): URL => new URL(`../${path}`, import.meta.url)
