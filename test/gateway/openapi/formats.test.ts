import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { startOrigin } from '../../support/origin.ts'

const document = `
openapi: 3.1.0
info: { title: visits, version: "1" }
paths:
  /visits:
    get:
      parameters: [{ name: since, in: query, schema: { type: string, format: date } }]
      responses: { '200': { description: all } }
    post:
      requestBody:
        content:
          application/json:
            schema: { type: object, properties: { email: { type: string, format: email }, count: { type: integer, format: int32 } } }
      responses: { '200': { description: done } }
`

const statuses = async (formats: object): Promise<readonly number[]> => {
  const origin = await startOrigin((_, wire) => wire.respond({ content: '{}' }))
  const file = join(await mkdtemp(join(tmpdir(), 'trellis-formats-')), 'visits.yaml')
  await writeFile(file, document)
  const gateway = await startTestGateway({
    services: {
      visits: {
        contract: 'openapi',
        document: file,
        mount: '/',
        upstream: { targets: [origin.origin] },
        ...formats,
      },
    },
  })
  onTestFinished(async () => {
    await gateway.close()
    await origin.close()
  })
  const post = (body: object) =>
    fetch(`${gateway.publicAddress}/visits`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
  const responses = [
    await fetch(`${gateway.publicAddress}/visits?since=yesterday`),
    await post({ email: 'nobody' }),
    await post({ email: 7 }),
    await post({ count: 2 ** 40 }),
  ]
  return responses.map(({ status }) => status)
}

test('formats of texts are checked', async () => {
  expect(await statuses({})).toEqual([400, 400, 400, 400])
})

test('with formats: annotate a text may have any format; types and the bounds of numbers count', async () => {
  expect(await statuses({ formats: 'annotate' })).toEqual([200, 200, 400, 400])
})
