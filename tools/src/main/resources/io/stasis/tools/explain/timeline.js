'use strict';
// Zoom and words only: the page is whole without them.
document.querySelectorAll('.timeline').forEach(function (timeline) {
  var scroll = timeline.querySelector('.scroll'), chart = timeline.querySelector('.chart');
  var axis = timeline.querySelector('.axis .track'), word = timeline.querySelector('.word');
  var span = Number(chart.dataset.nanos), zoom = 1;

  function label(nanos, step) {
    var unit = span >= 2e9 ? [1e9, ' s'] : span >= 2e6 ? [1e6, ' ms'] : [1e3, ' µs'];
    return (nanos / unit[0]).toFixed(Math.max(0, -Math.floor(Math.log10(step / unit[0]) + 1e-9))) + unit[1];
  }
  function ticks() {
    var room = Math.max(1, Math.floor(axis.clientWidth / 90)), step = Math.pow(10, Math.floor(Math.log10(span / room)));
    while (span / step > room) { step *= String(step)[0] === '2' ? 2.5 : 2; }
    axis.textContent = '';
    // Only what can be seen, and a screen to both sides.
    var from = Math.max(0, (scroll.scrollLeft - scroll.clientWidth) / axis.clientWidth * span);
    var to = Math.min(span * 0.985, (scroll.scrollLeft + 2 * scroll.clientWidth) / axis.clientWidth * span);
    for (var at = Math.floor(from / step) * step; at <= to; at += step) {
      var tick = document.createElement('span');
      tick.style.left = at / span * 100 + '%';
      tick.textContent = label(at, step);
      axis.appendChild(tick);
    }
  }
  function zoomTo(wanted, x) {
    var edge = axis.getBoundingClientRect().left - scroll.getBoundingClientRect().left + scroll.scrollLeft;
    var at = (scroll.scrollLeft + x - edge) / axis.clientWidth;
    zoom = Math.min(2000, Math.max(1, wanted));
    chart.style.setProperty('--zoom', zoom);
    chart.dataset.zoom = zoom;
    scroll.scrollLeft = edge + at * axis.clientWidth - x;
    ticks();
  }
  function middle() { return scroll.clientWidth / 2; }
  timeline.querySelector('.in').addEventListener('click', function () { zoomTo(zoom * 2, middle()); });
  timeline.querySelector('.out').addEventListener('click', function () { zoomTo(zoom / 2, middle()); });
  timeline.querySelector('.all').addEventListener('click', function () { zoomTo(1, 0); });
  scroll.addEventListener('wheel', function (e) {
    if (e.ctrlKey || e.metaKey) {
      e.preventDefault();
      zoomTo(zoom * Math.pow(1.002, -e.deltaY), e.clientX - scroll.getBoundingClientRect().left);
    }
  }, { passive: false });
  scroll.addEventListener('scroll', ticks);
  scroll.addEventListener('keydown', function (e) {
    if (e.key === '+' || e.key === '=') { zoomTo(zoom * 2, middle()); }
    if (e.key === '-') { zoomTo(zoom / 2, middle()); }
    if (e.key === '0') { zoomTo(1, 0); }
  });
  ['click', 'mouseover', 'focusin'].forEach(function (what) {
    chart.addEventListener(what, function (e) {
      var bar = e.target.closest('.bar');
      if (bar) { word.textContent = bar.title; }
    });
  });
  window.addEventListener('resize', ticks);
  ticks();
});
