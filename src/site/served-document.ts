import {
  type ApiBundle,
  fileOfReference,
  isObject,
  type JsonObject,
  member,
} from '../contracts/openapi/bundle.ts'

/** Where the other files of a document stand in the one that is served. */
const filesMember = 'x-files'

const escaped = (step: string): string => encodeURI(step.replaceAll('~', '~0').replaceAll('/', '~1'))

/** A reference as it is in one file: the root keeps its own, and other files are members of it. */
const servedReference = (reference: string, from: string, { root, files }: ApiBundle): string => {
  const file = fileOfReference(reference, from)
  if (file === undefined || !Object.hasOwn(files, file)) return reference
  const fragment = reference.includes('#') ? reference.slice(reference.indexOf('#') + 1) : ''
  return file === root ? `#${fragment}` : `#/${filesMember}/${escaped(file)}${fragment}`
}

const isServerList = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every((one) => typeof member(one, 'url') === 'string')

/** Without the extensions for the gateway, and without the addresses of the upstream. */
const served = (value: unknown, from: string, bundle: ApiBundle): unknown => {
  if (Array.isArray(value)) return value.map((item) => served(item, from, bundle))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      if (name.startsWith('x-trellis-') || (name === 'servers' && isServerList(inner))) return []
      const reference =
        name === '$ref' && typeof inner === 'string' ? servedReference(inner, from, bundle) : undefined
      return [[name, reference ?? served(inner, from, bundle)]]
    }),
  )
}

/** The document of a service as its clients may use it: one file, with the public URL as its only server. */
export const servedDocument = (bundle: ApiBundle, publicUrl: string): JsonObject => {
  const { root, files } = bundle
  const others = Object.entries(files).filter(([name]) => name !== root)
  return {
    ...(served(files[root], root, bundle) as JsonObject),
    servers: [{ url: publicUrl }],
    ...(others.length === 0
      ? {}
      : {
          [filesMember]: Object.fromEntries(others.map(([name, file]) => [name, served(file, name, bundle)])),
        }),
  }
}
