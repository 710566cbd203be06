import { requestHeader } from '../../src/http/headers/header-lines.ts'
import { type Call, ok, type Resource, type SiteResponse, type Values } from './call.ts'
import type { Form } from './entry.ts'
import { parseMultipart } from './multipart.ts'
import { rawBody } from './raw-body.ts'
import { SiteFault } from './site-fault.ts'
import { slugOf } from './store.ts'
import { integer, text } from './values.ts'

/** The fields of every seeded form: name, whether it must be filled, and its kind. */
const formFields = [
  { name: 'your-name', kind: 'text', error: 'Please fill out this field.' },
  { name: 'your-email', kind: 'email', error: 'Please enter an email address.' },
  { name: 'your-subject', kind: 'text', error: 'Please fill out this field.' },
] as const

/** Markup of the seeded forms. */
export const formMarkup = formFields
  .map(({ name, kind }) => `<label>${name} [${kind}* ${name}]</label>`)
  .join('\n')

const short = (form: Form) => ({ id: form.id, slug: form.slug, title: form.title, locale: 'en_US' })

const whole = (form: Form) => ({
  ...short(form),
  properties: {
    form: {
      content: form.form,
      fields: formFields.map(({ name, kind }) => ({ type: `${kind}*`, basetype: kind, name, options: [], raw_values: [], labels: [], values: [], pipes: null, content: '' })), // biome-ignore format: one record
    },
    mail: { active: true, subject: '[your-subject]', sender: '[your-name]', recipient: 'owner@example.org', body: '', additional_headers: '', attachments: '', use_html: false, exclude_blank: false }, // biome-ignore format: one record
    mail_2: { active: false },
    messages: { mail_sent_ok: sent, validation_error: invalid },
    additional_settings: { content: '', settings: [] },
  },
})

const sent = 'Thank you for your message. It has been sent.'
const invalid = 'One or more fields have an error. Please check and try again.'

const formOf = (call: Call): Form => {
  const form = call.site.store.forms.get(integer(call.path, 'id') ?? 0)
  if (form === undefined) {
    throw new SiteFault(404, 'wpcf7_not_found', 'The requested contact form was not found.')
  }
  return form
}

/** Contact Form 7 answers 403 even to the anonymous. */
const onlyEditors = (call: Call, what: string): void => {
  if (call.caller.role === 'admin') return
  throw new SiteFault(403, 'wpcf7_forbidden', `You are not allowed to ${what}.`)
}

/** Forms are few: a writer cannot fill the memory with them. */
const maxForms = 500

const createForm = (call: Call): SiteResponse => {
  const body = rawBody(call)
  const { forms } = call.site.store
  if (body['id'] !== undefined) {
    throw new SiteFault(400, 'wpcf7_post_exists', 'Cannot create existing contact form.')
  }
  if (forms.size >= maxForms)
    throw new SiteFault(507, 'demo_store_full', 'The embedded site holds no more forms.')
  const title = text(body, 'title') ?? 'Untitled'
  const id = call.site.store.nextId()
  const form: Form = { id, slug: slugOf(title), title, form: text(body, 'form') ?? formMarkup }
  forms.set(id, form)
  return ok({ ...whole(form), config_errors: {} })
}

/** The list of forms, and creation. */
export const formsResource: Resource = {
  permit: (call) =>
    onlyEditors(call, call.method === 'GET' ? 'access contact forms' : 'create a contact form'),
  run: (call) => {
    if (call.method === 'POST') return createForm(call)
    return ok([...call.site.store.forms.values()].map(short))
  },
}

/** One form. */
export const formResource: Resource = {
  permit: (call) => {
    const verb = { GET: 'access', DELETE: 'delete' }[call.method] ?? 'edit'
    onlyEditors(call, `${verb} the requested contact form`)
  },
  run: (call) => {
    const form = formOf(call)
    const { forms } = call.site.store
    if (call.method === 'GET') return ok(whole(form))
    if (call.method === 'DELETE') {
      forms.delete(form.id)
      return ok({ deleted: true })
    }
    const body = rawBody(call)
    const after = { ...form, title: text(body, 'title') ?? form.title, form: text(body, 'form') ?? form.form }
    forms.set(form.id, after)
    return ok({ ...whole(after), config_errors: {} })
  },
}

const everyone = (): void => undefined

const submitted = (call: Call): Values => {
  const type = requestHeader(call.fields, 'content-type') ?? ''
  if (type.startsWith('multipart/form-data')) {
    return Object.fromEntries(
      parseMultipart(call.content, type).map((part) => [part.name, part.content.toString('utf8')]),
    )
  }
  if (type.startsWith('application/x-www-form-urlencoded')) return rawBody(call)
  throw new SiteFault(415, 'wpcf7_unsupported_media_type', 'The request payload format is not supported.')
}

const isFilled = (kind: string, value: string): boolean =>
  kind === 'email' ? /^[^\s@]{1,64}@[^\s@]{1,200}$/.test(value) : value.trim() !== ''

const feedback = (call: Call): SiteResponse => {
  const form = formOf(call)
  const values = submitted(call)
  const tag = text(values, '_wpcf7_unit_tag') ?? ''
  if (!/^wpcf7-f\d{1,15}-[a-z0-9-]{1,40}$/.test(tag)) {
    throw new SiteFault(400, 'wpcf7_unit_tag_not_found', 'There is no valid unit tag.')
  }
  const faults = formFields
    .filter(({ name, kind }) => !isFilled(kind, text(values, name) ?? ''))
    .map(({ name, error }) => ({ field: name, message: error, idref: null, error_id: `${tag}-ve-${name}` }))
  // The outcome of a submission is in the body; the status is 200 whatever it is.
  return ok({
    contact_form_id: form.id,
    status: faults.length === 0 ? 'mail_sent' : 'validation_failed',
    message: faults.length === 0 ? sent : invalid,
    ...(faults.length === 0 ? {} : { invalid_fields: faults }),
    posted_data_hash: '',
    into: `#${tag}`,
  })
}

/** Submitting a form. */
export const feedbackResource: Resource = { permit: everyone, run: feedback }

/** The rules a submission is checked by. */
export const feedbackSchemaResource: Resource = {
  permit: everyone,
  run: (call) => {
    formOf(call)
    const rules = formFields.map(({ name, kind, error }) => ({
      rule: kind === 'email' ? 'email' : 'required',
      field: name,
      error,
    }))
    return ok({ version: 'Contact Form 7 SWV Schema 2024-10', locale: 'en_US', rules })
  },
}

/** Values to fill in again; nothing here needs any. */
export const refillResource: Resource = {
  permit: everyone,
  run: (call) => {
    formOf(call)
    return ok([])
  },
}
