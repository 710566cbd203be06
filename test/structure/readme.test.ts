import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'

const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')

/** Commands and what they print, as the README shows them. */
const shown = [...readme.matchAll(/^```console\n\$ (.+)\n([^`]+)```$/gm)].map(([, command, output]) => ({
  command: command as string,
  output: output as string,
}))

let gateway: GatewayProcess

// No settings: what `npm start` serves, on other ports.
beforeAll(async () => {
  gateway = await startGatewayProcess({})
})
afterAll(() => gateway.stop())

const here = (text: string): string =>
  text
    .replaceAll('http://127.0.0.1:8080', gateway.origin)
    .replaceAll('http://127.0.0.1:9090', gateway.adminOrigin)

/** A second may pass between an answer and its arrival. */
const withoutSeconds = (text: string): string => text.replace(/ttl=\d+/g, 'ttl=N')

test('the README shows five commands', () => {
  expect(shown).toHaveLength(5)
})

test.each(shown)('the README shows what is printed: $command', async ({ command, output }) => {
  const { stdout } = await promisify(execFile)('bash', ['-c', here(command)])
  expect(withoutSeconds(`${stdout.trimEnd()}\n`)).toBe(withoutSeconds(output))
})
