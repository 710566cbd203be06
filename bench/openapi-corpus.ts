import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { loadApiDocument } from '../src/config/read-document.ts'

/**
 * Loads every JSON and YAML file of a folder as an OpenAPI document, as a configuration would, and prints each refusal with its line
 * and the share that loads: npm run openapi:corpus -- FOLDER
 */
const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('name a folder: npm run openapi:corpus -- FOLDER')

const names = (await readdir(folder, { recursive: true }))
  .filter((name) => /\.(?:json|ya?ml)$/.test(name))
  .sort()
let loaded = 0
let refused = 0
let others = 0
for (const name of names) {
  const reading = await loadApiDocument(join(folder, name))
  if (reading.kind === 'loaded') loaded += 1
  else if (reading.messages.some((message) => message.endsWith('OpenAPI document of version 3.0 or 3.1')))
    others += 1
  else {
    refused += 1
    process.stdout.write(`${name}: ${reading.messages.length} faults, the first: ${reading.messages[0]}\n`)
  }
}
const share = ((100 * loaded) / Math.max(1, loaded + refused)).toFixed(2)
process.stdout.write(`${loaded} of ${loaded + refused} documents load (${share} %); ${others} other files\n`)
