import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EmbeddedUpstream } from '../../demo/embedded-server.ts'
import { admin, ask, home, startSite } from '../demo/wired-upstreams.ts'

let site: EmbeddedUpstream & { readonly rest: string }
beforeAll(async () => {
  site = await startSite('wordpress')
})
afterAll(() => site.close())

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const upload = (body: Uint8Array | FormData | string, headers: Record<string, string> = {}) =>
  ask(`${site.rest}/wp/v2/media`, { method: 'POST', as: admin, body, headers })

test('a file sent as the content is stored under the name in Content-Disposition', async () => {
  const { status, body, headers } = await upload(png, {
    'Content-Type': 'image/png',
    'Content-Disposition': 'attachment; filename="dot.png"',
  })
  expect(status).toBe(201)
  expect(headers.get('location')).toBe(`${home}/index.php/wp-json/wp/v2/media/${body.id}`)
  expect(headers.get('x-wp-upload-attachment-id')).toBe(String(body.id))
  expect(body).toMatchObject({
    slug: 'dot',
    status: 'inherit',
    type: 'attachment',
    media_type: 'image',
    mime_type: 'image/png',
    post: null,
    media_details: { width: 1, height: 1, filesize: png.length },
  })
  expect(body.source_url).toMatch(/\/wp-content\/uploads\/\d{4}\/\d\d\/dot\.png$/)
})

test('a file in a form has headers, and can belong to a post', async () => {
  const form = new FormData()
  form.append('title', 'A form')
  form.append('alt_text', 'Nothing to see')
  form.append('post', '12')
  form.append('file', new Blob([png], { type: 'image/png' }), 'form.png')
  const { status, body } = await upload(form)
  expect(status).toBe(201)
  expect(body).toMatchObject({ title: { raw: 'A form' }, alt_text: 'Nothing to see', post: 12 })
  const { body: ofPost } = await ask(`${site.rest}/wp/v2/media?parent=12`)
  expect(ofPost.map((one: { id: number }) => one.id)).toEqual([body.id])
})

test.each<
  [
    what: string,
    body: Uint8Array | FormData | string,
    fields: Record<string, string>,
    status: number,
    code: string,
  ]
>([
  ['no name', png, { 'Content-Type': 'image/png' }, 400, 'rest_upload_no_content_disposition'],
  [
    'JSON',
    '{"title":"x"}',
    { 'Content-Type': 'application/json' },
    400,
    'rest_upload_no_content_disposition',
  ],
  ['a form without a file', new FormData(), {}, 400, 'rest_upload_no_data'],
  [
    'nothing',
    new Uint8Array(),
    { 'Content-Type': 'image/png', 'Content-Disposition': 'attachment; filename="a.png"' },
    400,
    'rest_upload_no_data',
  ],
  [
    'a disposition without a name',
    png,
    { 'Content-Type': 'image/png', 'Content-Disposition': 'inline' },
    400,
    'rest_upload_invalid_disposition',
  ],
  [
    'a program',
    png,
    { 'Content-Type': 'image/png', 'Content-Disposition': 'attachment; filename="a.php"' },
    500,
    'rest_upload_sideload_error',
  ],
])('%s is refused', async (_what, body, headers, status, code) => {
  const reply = await upload(body, headers)
  expect([reply.status, reply.body.code]).toEqual([status, code])
})

test('a file of a name that is taken gets another one', async () => {
  const headers = { 'Content-Type': 'text/plain', 'Content-Disposition': 'attachment; filename=note.txt' }
  const names: string[] = []
  for (let i = 0; i < 3; i += 1)
    names.push((await upload('words', headers)).body.source_url.split('/').at(-1))
  expect(names).toEqual(['note.txt', 'note-1.txt', 'note-2.txt'])
})

test('a name cannot leave the uploads folder', async () => {
  const { body } = await upload(png, {
    'Content-Type': 'image/png',
    'Content-Disposition': 'attachment; filename="../../x y.png"',
  })
  expect(body.source_url).toMatch(/\/uploads\/\d{4}\/\d\d\/x-y\.png$/)
})

test('an edited image is a new one; an edit without edits, or of another file, is refused', async () => {
  const { body: list } = await ask(`${site.rest}/wp/v2/media?per_page=1&slug=image-1`)
  const [image] = list
  const edit = (body: unknown) =>
    ask(`${site.rest}/wp/v2/media/${image.id}/edit`, { method: 'POST', as: admin, body })
  const edited = await edit({ src: image.source_url, rotation: 90 })
  expect(edited.status).toBe(201)
  expect(edited.body.id).not.toBe(image.id)
  expect((await edit({ src: image.source_url })).body.code).toBe('rest_image_not_edited')
  expect((await edit({ src: 'http://example.org/x.png', rotation: 90 })).body.code).toBe(
    'rest_unknown_attachment',
  )
})
