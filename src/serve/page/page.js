'use strict';
// The client of tpc-run --serve: a chat or, where the model has no chat template, a text that goes on. What a model says only ever becomes text.
const $ = id => document.getElementById(id);
const fields = $('fields').elements, log = $('log'), text = $('text');
let chats = false;     // the model takes conversations
let messages = [];     // so far
let stopper = null;    // of the answer that is made

const NUMBERS = ['temperature', 'top_p', 'top_k', 'min_p', 'repetition_penalty', 'presence_penalty', 'frequency_penalty', 'max_tokens', 'seed'];

function headers() {
  return Object.assign({'Content-Type': 'application/json'}, fields.key.value ? {Authorization: 'Bearer ' + fields.key.value} : {});
}

// What the server says of an answer that is none.
async function fault(reply) {
  let said = reply.status + ' ' + reply.statusText;
  try {
    said = (await reply.json()).error.message;
  } catch (e) { /* it is not JSON */ }
  if (reply.status === 401) {
    $('keyed').hidden = false;
    $('settings').open = true;
    fields.key.focus();
  }
  return new Error(said);
}

function settings() {
  const body = {};
  for (const name of NUMBERS) {
    const field = fields[name];
    if (!field.checkValidity()) {
      $('settings').open = true;
      field.focus();
      throw new Error(field.labels[0].firstChild.data.trim() + ': ' + field.validationMessage);
    }
    if (field.value !== '') body[name] = Number(field.value);
  }
  return body;
}

// ---- what is shown

function put(parent, kind, words, name) {
  const e = document.createElement(kind);
  if (words) e.textContent = words;
  if (name) e.className = name;
  return parent.appendChild(e);
}

function entry(who, words, name) {
  const e = put(log, 'article', '', name);
  put(e, 'h2', who);
  return {all: e, words: put(e, 'div', words)};
}

function grows(parent) {
  return parent.appendChild(document.createTextNode(''));
}

// An answer that grows; what the model thinks goes before what it says.
function growing(who) {
  const e = entry(who, '', 'model'), words = grows(e.words);
  let thoughts = null;
  return {
    said: () => words.data,
    say(more) { words.appendData(more); },
    think(more) {
      if (!thoughts) {
        const box = document.createElement('details');
        put(box, 'summary', 'Thoughts');
        e.all.insertBefore(box, e.words);
        thoughts = grows(put(box, 'div'));
      }
      thoughts.appendData(more);
    },
    tell(words) { put(e.all, 'p', words, 'told'); },
    drop() { e.all.remove(); },
  };
}

// How far an answer is, for eyes; what became of it, for all: a screen reader is not told of each token.
function tell(words, live) {
  $('live').textContent = live ? words : '';
  $('told').textContent = live ? '' : words;
}

function atEnd() {
  return innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
}

// ---- a stream of events

async function* events(reply) {
  const reader = reply.body.getReader(), decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const {value, done} = await reader.read();
    rest += done ? decoder.decode() : decoder.decode(value, {stream: true});
    const parts = rest.split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      if (part === 'data: [DONE]') return;
      if (part.startsWith('data: ')) yield JSON.parse(part.slice(6));
    }
    if (done) throw new Error('the answer broke off');
  }
}

function speed(count, exact, first, start, end, usage) {
  const each = end > first && count > 1 ? (count - 1) / (end - first) * 1000 : 0, made = each && each.toFixed(each < 100 ? 1 : 0);
  const cached = usage && usage.prompt_tokens_details && usage.prompt_tokens_details.cached_tokens;
  return (exact ? '' : 'about ') + count + (count === 1 ? ' token' : ' tokens') + (made ? ', ' + made + ' tokens/s' : '') +
    (first ? ', first after ' + ((first - start) / 1000).toFixed(2) + ' s' : '') +
    (usage ? ', prompt of ' + usage.prompt_tokens + (cached ? ', of which ' + cached + ' were stored' : '') : '');
}

const ENDS = {length: 'The answer ends here, at the most tokens that it may have.'};

// Shows an answer while it is made. How it ended: a finish_reason, or "stopped".
async function follow(path, body, answer) {
  const start = performance.now();
  let first = 0, last = 0, pieces = 0, usage = null, finish = 'stopped';
  try {
    const reply = await fetch(path, {method: 'POST', headers: headers(), signal: stopper.signal,
      body: JSON.stringify(Object.assign(body, {stream: true, stream_options: {include_usage: true}}))});
    if (!reply.ok) throw await fault(reply);
    for await (const event of events(reply)) {
      usage = event.usage || usage;
      for (const choice of event.choices) {
        const delta = choice.delta || {content: choice.text}, follows = atEnd();
        finish = choice.finish_reason || finish;
        if (!delta.content && !delta.reasoning_content) continue;
        last = performance.now();
        first = first || last;
        pieces++;
        if (delta.reasoning_content) answer.think(delta.reasoning_content);
        if (delta.content) answer.say(delta.content);
        tell(speed(pieces, false, first, start, last), true);
        if (follows) scrollTo(0, document.documentElement.scrollHeight);
      }
    }
  } catch (e) {
    if (e.name !== 'AbortError') throw e;
  }
  const count = usage ? usage.completion_tokens : pieces;
  tell((finish === 'stopped' ? 'stopped: ' : '') + speed(count, usage, first, start, last, usage));
  return finish;
}

// ---- turns

function busy(on) {
  stopper = on ? new AbortController() : null;
  $('send').disabled = on;
  $('stop').disabled = !on;
  $('new').disabled = on;
  log.setAttribute('aria-busy', on); // it is read once it is whole
  if (on) {
    $('error').textContent = '';
    tell(chats ? 'reading the prompt' : 'reading the text', true);
  }
}

async function turn(work) {
  busy(true);
  try {
    await work();
  } catch (e) {
    tell('');
    $('error').textContent = e.message;
  }
  const stopping = document.activeElement === $('stop');
  busy(false);
  if (stopping || document.activeElement === document.body) text.focus();
}

async function chat() {
  const said = text.value, body = settings(), system = fields.system.value;
  const own = entry('You', said, 'user'), answer = growing('Model');
  scrollTo(0, document.documentElement.scrollHeight);
  text.value = '';
  body.messages = [...(system ? [{role: 'system', content: system}] : []), ...messages, {role: 'user', content: said}];
  try {
    const finish = await follow('v1/chat/completions', body, answer);
    if (ENDS[finish]) answer.tell(ENDS[finish]);
    messages.push({role: 'user', content: said}, {role: 'assistant', content: answer.said()});
  } catch (e) { // as if it had not been sent
    own.all.remove();
    answer.drop();
    text.value = text.value || said;
    throw e;
  }
}

async function goOn() {
  const body = Object.assign(settings(), {prompt: text.value}), before = text.value;
  body.max_tokens = body.max_tokens || 128;
  const answer = growing('What follows');
  try {
    await follow('v1/completions', body, answer);
    text.value = before + answer.said();
    text.scrollTop = text.scrollHeight;
  } catch (e) {
    answer.drop();
    throw e;
  }
}

// ---- the page

$('say').addEventListener('submit', e => {
  e.preventDefault();
  if (!stopper && text.value) turn(chats ? chat : goOn);
});
text.addEventListener('keydown', e => {
  if (chats && e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
    e.preventDefault();
    $('say').requestSubmit();
  }
});
addEventListener('keydown', e => {
  if (e.key === 'Escape' && stopper) stopper.abort();
});
$('stop').addEventListener('click', () => stopper && stopper.abort());
$('new').addEventListener('click', () => {
  messages = [];
  log.replaceChildren();
  $('error').textContent = '';
  tell('');
  text.focus();
});
fields.key.addEventListener('change', connect);
$('fields').addEventListener('submit', e => e.preventDefault());

async function connect() {
  $('error').textContent = '';
  try {
    const reply = await fetch('v1/models', {headers: headers()});
    if (!reply.ok) throw await fault(reply);
    const model = (await reply.json()).data[0], can = model.capabilities;
    document.title = model.id + ' · tpc';
    $('model').textContent = model.id;
    chats = can.chat;
    $('about').textContent = (chats ? 'chat' : can.completion ? 'a model without a chat template: it goes on with a text' :
      'this model makes embeddings: programs get them from /v1/embeddings') + ', at most ' + model.context_length + ' tokens';
    $('say').hidden = !can.completion;
    $('settings').hidden = !can.completion;
    $('new').hidden = !can.completion;
    $('new').textContent = chats ? 'New chat' : 'Clear';
    $('prompt').textContent = chats ? 'Message' : 'Text';
    $('send').textContent = chats ? 'Send' : 'Go on';
    $('keys').textContent = chats ? 'Enter sends, Shift and Enter begins a line, Escape stops.' : 'Escape stops.';
    log.setAttribute('aria-label', chats ? 'Conversation' : 'What the model wrote');
    for (const e of document.querySelectorAll('.chat')) e.hidden = !chats;
    if (!chats) text.rows = 8;
    text.focus();
  } catch (e) {
    $('error').textContent = e.message;
  }
}
connect();
