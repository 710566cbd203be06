import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Path of a certificate or key of the tests: `ca.pem`, `good.pem`, `good.key` … */
export const certificatePath = (name: string): string =>
  fileURLToPath(new URL(`../gateway/fixtures/upstream-tls/${name}`, import.meta.url))

/** Content of that file. */
export const pem = (name: string): string => readFileSync(certificatePath(name), 'utf8')

/** The certificate and the key of one name, as `listen.tls` and node:tls take them. */
export const keyPair = (name: string): { readonly cert: string; readonly key: string } => ({
  cert: pem(`${name}.pem`),
  key: pem(`${name}.key`),
})
