import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inspectForm } from '../../src/wordpress/arguments/inspect-form.ts'
import { times } from '../support/breadth.ts'
import { freePort } from '../support/ports.ts'
import { startProcess, untilReady } from '../support/processes.ts'
import { oneOf, type Random, randomFrom } from '../support/random.ts'
import { exchangeBytes } from '../support/raw-client.ts'
import { describeWith } from '../support/requirements.ts'

// Damaged forms, to PHP and to the inspector: where PHP has a parameter rest_route, the form is refused.

const program = '<?php header("Connection: close"); echo isset($_POST["rest_route"]) ? "found" : "none";'

const types = [
  'multipart/form-data; boundary=b',
  'Multipart/Form-Data; Boundary="b"',
  'multipart/form-data; xboundary=b; boundary=c',
  'multipart/form-data, boundary=b;',
  'multipart/form-data; boundary="b"x',
  'multipart/form-data; boundary=',
  'multipart/form-data; charset=boundary; y=b',
]

const names = [
  'rest_route',
  'rest.route',
  'rest route',
  'rest[route',
  ' rest_route',
  'rest_route[]',
  'rest_route[a',
  'Rest_Route',
]
const ends = ['\r\n', '\r\n', '\r\n', '\n', '\r\r\n', '\0\r\n', ' \r\n', '']
const count = times(600, 1_500)
const long = 'y'.repeat(5_200)

const written = (random: Random, name: string): string =>
  oneOf(random, [
    `name="${name}"`,
    `name='${name}'`,
    `name=${name}`,
    `NAME="${name}"`,
    `name = "${name}"`,
    `name=="${name}"`,
    `name="a"; name="${name}"`,
    `name="${name}`,
    `name="rest\\_route"`,
    `name="re\\"st_route"; name=rest_route`,
    `x="; name="${name}"`,
    `x='"'; name="${name}"`,
    `name=\t"${name}"`,
    `name="rest_${oneOf(random, ['\r\n', '\n'])}route"`,
    `name="${name}"; filename="f"`,
  ])

const header = (random: Random): string => {
  const form = oneOf(random, ['form-data; ', 'form-data;', 'x; ', '', ' form-data\t; '])
  const header = oneOf(random, [
    'Content-Disposition: ',
    'content-disposition:',
    'Content-Disposition:\t',
    'Content-Disposition : ',
  ])
  const before = oneOf(random, [
    '',
    '',
    'X: y\r\n',
    ' folded\r\n',
    'no colon\r\n',
    `X: ${long}\r\n`,
    `X: ${long}`,
    'X: y\r\n--b\r\n',
  ])
  return `${before}${header}${form}${written(random, oneOf(random, names))}`
}

const multipartBody = (random: Random): string => {
  const delimiter = (): string =>
    oneOf(random, ['--b', '--b', '--b', '--b', '--c', '--bb', '--b--', '--', ' --b', `${long}--b`])
  let body = oneOf(random, ['', '', 'preamble\r\n', `${long}`])
  for (let parts = Math.ceil(random() * 3); parts > 0; parts -= 1) {
    body += delimiter() + oneOf(random, ends) + header(random) + oneOf(random, ends)
    body += `${oneOf(random, ['\r\n', '\n', '', '\0\n'])}${oneOf(random, ['value', '', long, 'v\n--b', '--b\n'])}\r\n`
  }
  return body + oneOf(random, ['--b--\r\n', '--b\r\n', '', '--b--'])
}

const urlencodedBody = (random: Random): string => {
  const name = (): string =>
    [...oneOf(random, names)]
      .map((letter) =>
        random() < 0.3 ? `%${letter.charCodeAt(0).toString(16).padStart(2, '0')}` : letter.replace(' ', '+'),
      )
      .join('')
  const pair = (): string =>
    `${oneOf(random, ['', '', '+', '%20+', '+'.repeat(100), '%09', '%'])}${name()}${oneOf(random, ['', '', '%00x', `%00${long}`, '[', `[${long}]`, '[a]b', '%5b', 'x', '%0'])}${oneOf(random, ['=1', '', '=', '=='])}`
  return Array.from({ length: Math.ceil(random() * 3) }, pair).join(oneOf(random, ['&', '&&', '&a=1&', ';']))
}

/** In pieces of a random size, as it may arrive. */
const isRefused = (random: Random, type: string, body: Buffer): boolean => {
  const inspector = inspectForm('POST', { 'content-type': type }, [])
  const size = oneOf(random, [1, 2, 7, 64, 1_000, 100_000])
  for (let at = 0; at < body.length; at += size) {
    if (inspector?.read(Buffer.from(body.subarray(at, at + size))) !== undefined) return true
  }
  return inspector?.ifEnded() !== undefined
}

describeWith('php', 'PHP finds rest_route in no form that passes', () => {
  let php: ReturnType<typeof startProcess>
  let folder: string
  let origin: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'forms-of-php-'))
    await writeFile(join(folder, 'index.php'), program)
    const port = await freePort()
    origin = `http://127.0.0.1:${port}`
    php = startProcess('php', [
      '-d',
      'display_errors=0',
      '-S',
      `127.0.0.1:${port}`,
      join(folder, 'index.php'),
    ])
    await untilReady(php, () => fetch(`${origin}/`))
  })
  afterAll(async () => {
    await php?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const finds = async (type: string, body: Buffer): Promise<boolean> => {
    const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n`
    const response = await exchangeBytes(origin, Buffer.concat([Buffer.from(head, 'latin1'), body]))
    expect(response).toMatch(/(?:found|none)$/)
    return response.endsWith('found')
  }

  test.each([
    ['multipart', multipartBody],
    ['urlencoded', urlencodedBody],
  ])(
    '%s',
    async (kind, bodyOf) => {
      const random = randomFrom(7)
      const counts = { found: 0, refused: 0, passed: 0 }
      for (let number = 0; number < count; number += 1) {
        const body = Buffer.from(bodyOf(random), 'latin1')
        const type = kind === 'multipart' ? oneOf(random, types) : 'application/x-www-form-urlencoded'
        const isFound = await finds(type, body)
        const refused = isRefused(random, type, body)
        counts[isFound ? 'found' : refused ? 'refused' : 'passed'] += 1
        if (isFound)
          expect(
            refused,
            `form ${number}: ${type} ${JSON.stringify(body.toString('latin1').replaceAll(long, '[long]'))}`,
          ).toBe(true)
      }
      process.stdout.write(`forms of PHP, ${kind}: ${JSON.stringify(counts)}\n`)
      // The damage leaves enough of both.
      expect(counts.found).toBeGreaterThan(count / 15)
      expect(counts.passed).toBeGreaterThan(count / 15)
    },
    300_000,
  )
})
