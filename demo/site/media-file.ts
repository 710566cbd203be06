import { requestHeader } from '../../src/http/headers/header-lines.ts'
import type { Call } from './call.ts'
import { parseMultipart } from './multipart.ts'
import { SiteFault } from './site-fault.ts'

/** A file as it was uploaded, and the form fields that came with it. */
export type UploadedFile = {
  readonly name: string
  readonly content: Buffer
  readonly fields: Readonly<Record<string, string>>
}

const mimeTypes: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  mp4: 'video/mp4',
  mp3: 'audio/mpeg',
  pdf: 'application/pdf',
  txt: 'text/plain',
  csv: 'text/csv',
}

/** Media type by extension; what is not listed may not be uploaded. */
export const mimeTypeOf = (name: string): string => {
  const type = mimeTypes[name.slice(name.lastIndexOf('.') + 1).toLowerCase()]
  if (type === undefined) {
    const message = 'Sorry, you are not allowed to upload this file type.'
    throw new SiteFault(500, 'rest_upload_sideload_error', message)
  }
  return type
}

/** Letters, digits, dots and dashes of the last path segment: the name never leaves the uploads folder. */
const safeName = (name: string): string => {
  const last = name.split(/[/\\]/).at(-1) ?? ''
  return last.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 100) || 'file'
}

const noData = (): SiteFault => new SiteFault(400, 'rest_upload_no_data', 'No data supplied.')

const fromMultipart = (call: Call, type: string): UploadedFile => {
  const parts = parseMultipart(call.content, type)
  const file = parts.find((part) => part.name === 'file' && part.fileName !== undefined)
  if (file?.fileName === undefined || file.content.length === 0) throw noData()
  const fields = parts
    .filter((part) => part.fileName === undefined)
    .map((part) => [part.name, part.content.toString('utf8')])
  return { name: safeName(file.fileName), content: file.content, fields: Object.fromEntries(fields) }
}

const quotedName = /filename="([^"\\]{1,200})"/i
const bareName = /filename=([^\s;"]{1,200})/i

/** The uploaded file: the part `file` of a form, or the whole content named by Content-Disposition. */
export const uploadedFile = (call: Call): UploadedFile => {
  const type = requestHeader(call.fields, 'content-type') ?? ''
  if (type.toLowerCase().startsWith('multipart/form-data')) return fromMultipart(call, type)
  const disposition = requestHeader(call.fields, 'content-disposition')
  if (call.content.length === 0 && disposition !== undefined) throw noData()
  if (disposition === undefined) {
    const message = 'No Content-Disposition supplied.'
    throw new SiteFault(400, 'rest_upload_no_content_disposition', message)
  }
  const name = (quotedName.exec(disposition) ?? bareName.exec(disposition))?.[1]
  if (name === undefined) {
    const message =
      'Invalid Content-Disposition supplied. Content-Disposition needs to be formatted as `attachment; filename="image.png"` or similar.'
    throw new SiteFault(400, 'rest_upload_invalid_disposition', message)
  }
  return { name: safeName(name), content: call.content, fields: {} }
}

/** Width and height of a PNG, read from its header (W3C PNG §11.2.1); other formats are not measured. */
export const imageSize = (content: Buffer): { width: number; height: number } | undefined =>
  content.length >= 24 && content.readUInt32BE(0) === 0x89504e47
    ? { width: content.readUInt32BE(16), height: content.readUInt32BE(20) }
    : undefined
