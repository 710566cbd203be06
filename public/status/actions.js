// The forms: explain, purge (counted first, done when confirmed) and drain.

import { read, write } from './ask.js'
import { element } from './draw.js'
import { explain } from './explain.js'
import { counted } from './numbers.js'

/** @param {string} text */
const say = (text) => {
  element('outcome').textContent = text
}

/** @param {{ status: number, content: { detail?: string, title?: string } }} answer */
const fault = ({ status, content }) =>
  `Refused (${status}): ${content.detail ?? content.title ?? 'no reason given'}`

/** @type {(() => Promise<void>) | undefined} */
let pending

/** @param {string} question @param {() => Promise<void>} action */
const confirmFirst = (question, action) => {
  pending = action
  const place = element('confirm')
  const text = place.querySelector('span')
  if (text !== null) text.textContent = question
  place.hidden = false
  element('no').focus()
}

const forget = () => {
  pending = undefined
  element('confirm').hidden = true
}

/**
 * Runs what a form asks for, and says when the gateway cannot be reached.
 * @param {string} id
 * @param {(data: FormData) => Promise<void>} action
 */
const onSubmit = (id, action) => {
  const form = /** @type {HTMLFormElement} */ (element(id))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    forget()
    action(new FormData(form)).catch(() => say('The gateway did not respond.'))
  })
}

/** An example of each way to select responses; `all` needs no value. */
const examples = {
  url: '/index.php/site-json/site/v2/posts?per_page=5',
  tag: 'site/any/posts',
  prefix: '/index.php/site-json/site/v2/posts',
  all: undefined,
}

/** @param {{ level: string, configured: string, until?: string }} state */
const showLevel = ({ level, configured, until }) => {
  const form = /** @type {HTMLFormElement} */ (element('log-level'))
  const select = /** @type {HTMLSelectElement} */ (form.elements.namedItem('level'))
  select.value = level
  const end = until === undefined ? '' : ` until ${new Date(until).toLocaleTimeString('en-GB')}`
  element('log-state').textContent =
    level === configured ? `${level}, as configured` : `${level}${end}; configured: ${configured}`
}

const readLevel = async () => {
  const { ok, content } = await read('log-level')
  if (ok) showLevel(content)
}

/** @param {FormData} data */
const changeLevel = async (data) => {
  const time = String(data.get('for'))
  const done = await write(
    'log-level',
    { level: String(data.get('level')), ...(time === '' ? {} : { for: time }) },
    'PUT',
  )
  if (done.ok) showLevel(done.content)
  else element('log-state').textContent = fault(done)
}

const askForValue = () => {
  const form = /** @type {HTMLFormElement} */ (element('purge'))
  const by = /** @type {keyof typeof examples} */ (new FormData(form).get('by'))
  const value = /** @type {HTMLInputElement} */ (form.elements.namedItem('value'))
  value.disabled = by === 'all'
  const button = form.querySelector('button')
  button?.classList.toggle('danger', by === 'all')
  value.placeholder = examples[by] ?? ''
}

/** @param {number} entries */
const storedResponses = (entries) => counted(entries, 'stored response')

/** @param {FormData} data */
const purgeOf = (data) => {
  const by = String(data.get('by'))
  return { [by]: by === 'all' ? true : String(data.get('value')), mode: String(data.get('mode')) }
}

/** @param {FormData} data */
const askPurge = async (data) => {
  const asked = purgeOf(data)
  const dryRun = await write('cache/purge', { ...asked, dryRun: true })
  if (!dryRun.ok) return say(fault(dryRun))
  const isSoft = asked['mode'] === 'soft'
  const concerned = storedResponses(dryRun.content.entries)
  say('')
  confirmFirst(isSoft ? `Mark ${concerned} as stale?` : `Remove ${concerned}?`, async () => {
    const done = await write('cache/purge', asked)
    const verb = isSoft ? 'Marked as stale' : 'Removed'
    say(done.ok ? `${verb}: ${storedResponses(done.content.entries)}.` : fault(done))
  })
}

const askDrain = async () =>
  confirmFirst(
    'Drain? The gateway finishes the requests in flight, takes no new ones, and ends.',
    async () => {
      const done = await write('drain', {})
      say(done.ok ? 'Draining.' : fault(done))
    },
  )

/** Makes the forms work. */
export const listen = () => {
  onSubmit('purge', askPurge)
  onSubmit('drain', askDrain)
  onSubmit('explain', (data) => explain(data, fault))
  onSubmit('log-level', changeLevel)
  readLevel().catch(() => undefined)
  // The field is read with each request: Enter has nothing to send.
  onSubmit('credential', async () => {
    element('token-state').textContent = 'The token is sent with each request, and stored nowhere.'
    await readLevel()
  })
  element('purge').addEventListener('change', askForValue)
  // A reloaded page keeps what was chosen before.
  askForValue()
  element('no').addEventListener('click', () => {
    forget()
    say('Nothing was done.')
  })
  element('yes').addEventListener('click', () => {
    const action = pending
    forget()
    action?.().catch(() => say('The gateway did not respond.'))
  })
}
