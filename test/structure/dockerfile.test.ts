import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { execForm, parseDockerfile } from '../support/dockerfile.ts'

const root = new URL('../../', import.meta.url)
const stages = parseDockerfile(await readFile(new URL('Dockerfile', root), 'utf8'))
const [build, runtime] = stages
const last = (name: string) => runtime?.instructions.findLast((instruction) => instruction.name === name)

test('it builds in one stage and runs from another, on one and the same base', () => {
  expect(stages).toHaveLength(2)
  expect(build?.base).toMatch(/^node:\d+-slim$/)
  expect(runtime?.base).toBe(build?.base)
  expect(runtime?.instructions.map((instruction) => instruction.name)).not.toContain('RUN')
})

test('dependencies come from the lock file, and stay behind: the bundle contains what is used of them', () => {
  const runs = build?.instructions.filter((instruction) => instruction.name === 'RUN').map(({ text }) => text)
  expect(runs).toEqual(expect.arrayContaining([expect.stringMatching(/^npm ci\b/)]))
  expect(runtime?.instructions.flatMap(({ words }) => words).join(' ')).not.toContain('node_modules')
})

test('it runs as a user without rights', () => {
  expect(last('USER')?.text).toMatch(/^(?!root|0\b)\w+$/)
})

test('SIGTERM reaches node: it is started without a shell', () => {
  expect(execForm(last('ENTRYPOINT'))?.[0]).toBe('node')
  expect(execForm(last('CMD'))).toEqual(['start'])
  expect(last('STOPSIGNAL')?.text).toBe('SIGTERM')
})

test('its health check needs nothing but node', () => {
  expect(execForm(last('HEALTHCHECK'))?.[0]).toBe('node')
  expect(last('HEALTHCHECK')?.text).toContain('/livez')
})

test('the build context contains what is copied, and nothing else', async () => {
  const ignore = (await readFile(new URL('.dockerignore', root), 'utf8'))
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const copied = stages
    .flatMap((stage) => stage.instructions)
    .filter((instruction) => instruction.name === 'COPY' && instruction.flags['from'] === undefined)
    .flatMap((instruction) => instruction.words.slice(0, -1))
  expect(ignore[0]).toBe('*')
  expect(ignore.slice(1).sort()).toEqual([...new Set(copied)].map((path) => `!${path}`).sort())
})
