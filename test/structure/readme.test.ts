import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { comparable, printedBy, shownCommands } from '../support/shown-commands.ts'

const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')

const shown = shownCommands(readme)

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

test('the README shows five commands', () => {
  expect(shown).toHaveLength(5)
})

test.each(shown)('the README shows what is printed: $command', async ({ command, output }) => {
  expect(comparable(await printedBy(here(command)))).toBe(comparable(output))
})
