import { type Call, ok, type Resource } from './call.ts'
import type { CollectionSpec } from './collections.ts'
import { blankEntry, type Entry } from './entry.ts'
import { collectionResource, entryOf } from './items.ts'
import { imageSize, mimeTypeOf, type UploadedFile, uploadedFile } from './media-file.ts'
import { renderItem } from './render-item.ts'
import { denied, SiteFault } from './site-fault.ts'
import { integer, text } from './values.ts'
import { written } from './write.ts'

const imageMeta = {
  aperture: '0',
  credit: '',
  camera: '',
  caption: '',
  created_timestamp: '0',
  copyright: '',
  focal_length: '0',
  iso: '0',
  shutter_speed: '0',
  title: '',
  orientation: '0',
  keywords: [],
}

/** A stored file, without its bytes: the demo describes files and keeps none. */
export type MediaFile = {
  readonly name: string
  readonly mimeType: string
  readonly bytes: number
  readonly size: { readonly width: number; readonly height: number } | undefined
}

const folderOf = (at: number): string => new Date(at).toISOString().slice(0, 7).replace('-', '/')

const sourceUrl = (home: string, at: number, name: string): string =>
  `${home}/wp-content/uploads/${folderOf(at)}/${name}`

/** The fields of an attachment that come from its file. */
export const fileFields = (home: string, at: number, file: MediaFile): Record<string, unknown> => {
  const source = sourceUrl(home, at, file.name)
  const isImage = file.mimeType.startsWith('image/')
  const whole = { file: file.name, ...file.size, mime_type: file.mimeType, source_url: source }
  const details =
    isImage && file.size
      ? {
          ...file.size,
          file: `${folderOf(at)}/${file.name}`,
          filesize: file.bytes,
          sizes: { full: whole },
          image_meta: imageMeta,
        }
      : { filesize: file.bytes, sizes: {} }
  return {
    description: '',
    caption: '',
    alt_text: '',
    media_type: isImage ? 'image' : 'file',
    mime_type: file.mimeType,
    media_details: details,
    source_url: source,
  }
}

/** The name with `-1`, `-2` … when the folder has such a file. */
const freeName = (call: Call, at: number, name: string): string => {
  const taken = new Set(call.site.store.ofType('attachment').map((entry) => entry.own['source_url']))
  const dot = Math.max(name.lastIndexOf('.'), 1)
  let free = name
  for (let suffix = 1; taken.has(sourceUrl(call.site.home, at, free)); suffix += 1) {
    free = `${name.slice(0, dot)}-${suffix}${name.slice(dot)}`
  }
  return free
}

const newAttachment = (call: Call, file: UploadedFile): Entry => {
  const { store, home, now } = call.site
  const date = now()
  const name = freeName(call, date, file.name)
  const title = name.slice(0, Math.max(name.lastIndexOf('.'), 1))
  const stored: MediaFile = {
    name,
    mimeType: mimeTypeOf(file.name),
    bytes: file.content.length,
    size: imageSize(file.content),
  }
  return {
    ...blankEntry,
    id: store.nextId(),
    type: 'attachment',
    status: 'inherit',
    pingStatus: 'closed',
    author: call.caller.userId,
    title,
    date,
    modified: date,
    own: fileFields(home, date, stored),
  }
}

const uploadArguments = (call: Call, file: UploadedFile): Call => {
  const post = integer(file.fields, 'post')
  return { ...call, args: { ...call.args, ...file.fields, ...(post === undefined ? {} : { post }) } }
}

/** The media list, and the upload of a file. */
export const mediaCollection = (spec: CollectionSpec): Resource => {
  const shared = collectionResource(spec)
  return {
    ...shared,
    run: (call) => {
      if (call.method === 'GET') return shared.run(call)
      const { site } = call
      const file = uploadedFile(call)
      const entry = site.store.put(written(uploadArguments(call, file), spec, newAttachment(call, file)))
      return {
        status: 201,
        headers: {
          'X-WP-Upload-Attachment-ID': String(entry.id),
          Location: `${site.root}/${site.names.content}/media/${entry.id}`,
        },
        body: renderItem(call, spec, entry, 'edit'),
      }
    },
  }
}

const isEdited = (call: Call): boolean =>
  Array.isArray(call.args['modifiers']) ||
  ['rotation', 'x', 'y', 'width', 'height'].some((name) => call.args[name] !== undefined)

const editImage = (call: Call, spec: CollectionSpec, image: Entry): Entry => {
  const { site } = call
  if (text(call.args, 'src') !== image.own['source_url']) {
    throw new SiteFault(404, 'rest_unknown_attachment', 'Unable to get meta information for file.')
  }
  if (!isEdited(call)) {
    const message = 'The image was not edited. Edit the image before applying the changes.'
    throw new SiteFault(400, 'rest_image_not_edited', message)
  }
  const date = site.now()
  const name = `${image.slug}-edited.png`
  const own = {
    ...image.own,
    ...fileFields(site.home, date, { name, mimeType: 'image/png', bytes: 0, size: undefined }),
  }
  const copy: Entry = {
    ...image,
    id: site.store.nextId(),
    slug: `${image.slug}-edited`,
    date,
    modified: date,
    own: { ...own, media_details: image.own['media_details'] },
  }
  return site.store.put(written(call, spec, copy))
}

/** What is done with a file once it is there: finishing its sizes, or making an edited copy. */
export const mediaAction = (spec: CollectionSpec): Resource => ({
  permit: (call) => {
    const edits = call.row.id.endsWith('edit')
    if (!edits) entryOf(call, spec, integer(call.path, 'id'))
    if (call.caller.role === 'admin') return
    throw edits
      ? denied(
          call.caller,
          'rest_cannot_edit_image',
          'Sorry, you are not allowed to upload media on this site.',
        )
      : denied(call.caller, 'rest_cannot_edit', 'Sorry, you are not allowed to edit this post.')
  },
  run: (call) => {
    const image = entryOf(call, spec, integer(call.path, 'id'))
    if (call.row.id.endsWith('post-process')) return ok(renderItem(call, spec, image, 'edit'))
    const copy = editImage(call, spec, image)
    return {
      status: 201,
      headers: { Location: `${call.site.root}/${call.site.names.content}/media/${copy.id}` },
      body: renderItem(call, spec, copy, 'edit'),
    }
  },
})
